// The one order in which squares are summed, so that every executor gives the same bits.
// Used by the drivers for the global norm.
#pragma once

#include <cstdint>

#include "memfit/core/config.hpp"

namespace memfit::detail {

/// Values are summed part by part: value i of a part joins sum i mod `sums`, in order; then sum i
/// is joined by sum i + 64, then by sum i + 32, and so on. The sums of the parts, over all tensors
/// in order, are values again, until one is left.
inline constexpr int sums = 128;
inline constexpr std::int64_t sum_part = 8 * sums;

/// Number of parts of n values.
MEMFIT_HD constexpr std::int64_t sum_parts(std::int64_t n) {
  return (n + sum_part - 1) / sum_part;
}

}  // namespace memfit::detail
