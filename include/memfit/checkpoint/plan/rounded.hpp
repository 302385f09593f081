// What buffers of a chain begin at multiples of.
// Used by the carver, the runner and whoever computes the bytes of a chain.
#pragma once

#include <cstdint>

namespace memfit::checkpoint {

/// What every buffer and every carved array begins at a multiple of, counted from the start of its
/// storage: a cache line of a GPU. The host aligns the storage itself to 64 bytes only.
inline constexpr std::int64_t alignment = 128;

/// The next multiple of the alignment, or the last one that 64 bits hold.
constexpr std::int64_t rounded(std::int64_t bytes) {
  return ((bytes > INT64_MAX - alignment ? bytes - alignment : bytes) + alignment - 1) / alignment *
         alignment;
}

}  // namespace memfit::checkpoint
