// Counter-based random bits: a pure function of (seed, step, tensor, element).
// Used by codecs that round stochastically; the same bits for any threads, lanes or device.
#pragma once

#include <cstdint>

#include "memfit/core/config.hpp"
#include "memfit/core/lanes.hpp"

namespace memfit {

/// Key of one tensor in one step; every element of it draws its own bits.
struct noise_key {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

namespace detail {

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
MEMFIT_HD inline std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// A 32-bit mixer with low bias (C. Wellons, "Prospecting for hash functions", 2018).
template <class U>
MEMFIT_HD inline U mix32(U x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

}  // namespace detail

/// Key for (seed, step, tensor): distinct arguments give independent streams.
MEMFIT_HD inline noise_key make_noise_key(std::uint64_t seed, std::int64_t step,
                                          std::int64_t tensor) {
  std::uint64_t z = detail::mix64(seed + 0x9e3779b97f4a7c15u);
  z = detail::mix64(z ^ static_cast<std::uint64_t>(step));
  z = detail::mix64(z + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(tensor));
  return {static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(z >> 32)};
}

/// The key of a later part of the same step, counted from 0; the first one's is the step's.
MEMFIT_HD inline noise_key part_key(noise_key key, std::int64_t part) {
  if (part == 0) return key;
  auto const z = (std::uint64_t{key.second} << 32 | key.first) ^
                 detail::mix64(static_cast<std::uint64_t>(part));
  auto const mixed = detail::mix64(z);
  return {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
}

/// The key of a slot's moments: their noise is not that of the parameter, nor of another slot.
MEMFIT_HD inline noise_key slot_key(noise_key key, int slot) {
  auto const z = (std::uint64_t{key.second} << 32 | key.first) +
                 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(slot) + 1);
  auto const mixed = detail::mix64(z);
  return {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
}

/// The key for elements whose 64-bit index has these upper 32 bits.
MEMFIT_HD inline noise_key fold_high(noise_key key, std::int64_t index) {
  auto const high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(index) >> 32);
  return {key.first, key.second ^ detail::mix32(high)};
}

/// 32 random bits for the element with these lower 32 index bits.
template <class U>
MEMFIT_HD inline U noise(noise_key key, U const& index) {
  return detail::mix32(detail::mix32(index ^ key.first) + key.second);
}

}  // namespace memfit
