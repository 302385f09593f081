// How the sums of micro-batches' gradients lie one behind the other.
// Used by the accumulator, which lays them out so, and by the estimate.
#pragma once

#include <cstdint>

namespace memfit::fit {

/// Elements that the sums of a tensor of `count` occupy: each tensor's begin at a multiple of 128
/// bytes, which is one of `element_bytes`, too.
constexpr std::int64_t elements_of_sums(std::int64_t count, std::int64_t element_bytes) {
  auto const aligned = 128 / element_bytes;
  return (count / aligned + (count % aligned != 0)) * aligned;
}

}  // namespace memfit::fit
