// Inputs of every kind that optimizers meet: ordinary, sparse, tiny, huge, empty.
// Used by the tests of quantize, exec and optimizer; the same seed gives the same numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace test {

enum class kind { normal, lognormal, sparse, zeros, subnormal, tiny, huge, alternating, mixed };

/// Kinds on which fp32 arithmetic neither overflows nor underflows, so that tolerances are tight.
inline constexpr kind ordinary_kinds[] = {kind::normal, kind::lognormal, kind::sparse, kind::zeros,
                                          kind::alternating};
inline constexpr kind all_kinds[] = {kind::normal, kind::lognormal,   kind::sparse,
                                     kind::zeros,  kind::subnormal,   kind::tiny,
                                     kind::huge,   kind::alternating, kind::mixed};

inline char const* name_of(kind k) {
  constexpr char const* names[] = {"normal", "lognormal", "sparse",      "zeros", "subnormal",
                                   "tiny",   "huge",      "alternating", "mixed"};
  return names[static_cast<int>(k)];
}

inline std::vector<float> make_input(kind k, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 bits(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(k));
  std::normal_distribution<double> normal;
  auto const sign = [&] { return bits() & 1u ? 1.0 : -1.0; };
  auto const one = [&](kind which, std::int64_t i) -> double {
    switch (which) {
      case kind::normal:
        return normal(bits);
      case kind::lognormal:
        return sign() * std::exp(3 * normal(bits));
      case kind::sparse:
        return bits() % 8 == 0 ? normal(bits) : 0.0;
      case kind::zeros:
        return 0.0;
      case kind::subnormal:
        return normal(bits) * 1e-40;
      case kind::tiny:
        return normal(bits) * 1e-22;
      case kind::huge:
        return std::fmin(std::fmax(normal(bits), -3), 3) * 1e38;
      case kind::alternating:
        return i % 2 == 0 ? 1.0 : -1.0;
      case kind::mixed:
        break;
    }
    return sign() * std::ldexp(1 + normal(bits) / 16, static_cast<int>(bits() % 270) - 148);
  };
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    double const x = one(k, i);
    double const largest = std::numeric_limits<float>::max();
    values[static_cast<std::size_t>(i)] =
        static_cast<float>(std::fmin(std::fmax(x, -largest), largest));
  }
  return values;
}

}  // namespace test
