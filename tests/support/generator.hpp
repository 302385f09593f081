// Shows std::mt19937 to memfit as a generator whose numbers can be repeated.
// Used by the tests of checkpointing.
#pragma once

#include <random>

#include "memfit/checkpoint/run/random_state.hpp"

template <>
struct memfit::generator_traits<std::mt19937> {
  static std::mt19937 get(std::mt19937 const& g) { return g; }
  static void set(std::mt19937& g, std::mt19937 const& state) { g = state; }
};
