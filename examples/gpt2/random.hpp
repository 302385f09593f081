// A small reproducible generator: the n-th number depends on the seed and n alone.
// Used by initialization, the choice of training windows and sampling in the GPT-2 example.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace gpt2 {

class random_source {
 public:
  // Streams of one seed are unrelated.
  random_source(std::int64_t seed, std::int64_t stream)
      : state_{mix(mix(static_cast<std::uint64_t>(seed)) + static_cast<std::uint64_t>(stream))} {}

  std::uint64_t bits() { return mix(state_ += 0x9E3779B97F4A7C15U); }

  // In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  double normal() {
    double const radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace gpt2
