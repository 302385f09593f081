// The format float8: floats of 8 bits relative to the largest magnitude of their block.
// Used for moments; coded with a few integer operations and no table.
#pragma once

#include <cstdint>

#include "memfit/codec/concept.hpp"

namespace memfit {

namespace detail {

/// A float's pattern rounded to 3 mantissa bits, ties to even: exponent, then mantissa.
template <class U>
MEMFIT_HD inline U keep_3_mantissa_bits(U const& u) {
  return (u + 0x7ffffu + ((u >> 20) & 1u)) >> 20;
}

}  // namespace detail

/// E4M3 with subnormals: sign in bit 7, exponent bias 15, 0x78 is 1; least magnitude 2^-17.
/// x in [-1, 1]; larger magnitudes give 1. 1 byte. Zero keeps its sign.
struct e4m3_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr std::uint32_t zero = 0;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    using F = value_of<U>;
    auto const magnitude = (c << 20) & 0x07f00000u;
    auto const normal = magnitude + (112u << 23);
    auto const subnormal = bits(from_bits<F>(magnitude + (113u << 23)) - 0x1p-14f);
    auto const m = select(magnitude < U(1u << 23), subnormal, normal);
    return from_bits<F>(m | ((c << 24) & 0x80000000u));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    auto const u = bits(x);
    auto const magnitude = u & 0x7fffffffu;
    auto const a = from_bits<F>(magnitude);
    // Adding 64 rounds to multiples of 2^-17, the spacing of subnormals.
    auto const subnormal = bits(a + 64.0f) - 0x42800000u;
    auto const normal = detail::keep_3_mantissa_bits(magnitude) - (112u << 3);
    auto const m = select(a < F(0x1p-14f), subnormal, min(normal, 0x78u));
    return m | ((u >> 24) & 0x80u);
  }
};

/// UE5M3: unsigned, code 0 is 0, code c is 2^((c >> 3) - 31) * (1 + (c & 7) / 8), 248 is 1.
/// x in [0, 1]; larger values give 1, below half of the least value 0. 1 byte.
struct ue5m3_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr std::uint32_t zero = 0;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return from_bits<value_of<U>>(select(c == U(0u), U(0u), (c << 20) + (96u << 23)));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    using U = uint_of<F>;
    auto const u = bits(x);
    auto const normal = detail::keep_3_mantissa_bits(max(u, (96u << 23) + (1u << 20))) - (96u << 3);
    auto const least = F(0x1.2p-32f);  // half of code 1
    return select(x < least, U(0u), min(normal, 248u));
  }
};

/// 8-bit floats: E4M3 for slots of any sign, UE5M3 for non-negative ones. 1 byte and a scale of
/// 4 bytes per block.
struct float8 {
  static constexpr int block = default_block;
  template <range R>
  using codec = std::conditional_t<R == range::any, e4m3_codec, ue5m3_codec>;
};

}  // namespace memfit
