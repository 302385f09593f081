// The format float8: floats of 8 bits relative to the largest magnitude of their block.
// Used for moments; coded with a few integer operations and no table.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/concept.hpp"

namespace memfit {

/// E4M3 with subnormals: sign in bit 7, exponent bias 15, 0x78 is 1; least magnitude 2^-17.
/// x in [-1, 1]. Zero keeps its sign. 1 byte.
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
  /// The fp16 of the same value, as a 16-bit pattern: for machines that widen fp16 themselves.
  template <class H>
  MEMFIT_HD static H fp16_pattern(H const& c) {
    return (c + (c & H(0x80u))) << 7;
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    auto const a = abs(x);
    auto const exponent = bits(at_least(a, 0x1p-14f)) & 0x7f800000u;
    // Added to a number 2^20 times its power of two, a is rounded to 3 mantissa bits, or to the
    // spacing of subnormals, and counts from there: 8 to 16 steps, of which 8 belong to the
    // exponent: 120 less 128 takes them off.
    auto const steps = bits(a + from_bits<F>(exponent + ((20u << 23) + 120u)));
    return merge(0x7fu, (exponent >> 20) + steps, bits(x) >> 24);
  }
};

/// UE5M3: unsigned, code 0 is 0, code c is 2^((c >> 3) - 31) * (1 + (c & 7) / 8), 248 is 1.
/// x in [0, 1]; below half of the least value 0. 1 byte.
struct ue5m3_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr std::uint32_t zero = 0;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return from_bits<value_of<U>>(select(c > U(0u), (c << 20) + (96u << 23), U(0u)));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return encode_above(x, x >= F(0x1.2p-32f));  // half of code 1
  }
  /// The nearest code above zero, or zero where the mask does not hold.
  template <class F>
  MEMFIT_HD static uint_of<F> encode_above(F const& x, mask_of<F> const& above) {
    using U = uint_of<F>;
    // Rounds to 3 mantissa bits, ties to even, and counts exponents from that of code 0.
    constexpr std::uint32_t half = 0x80000u - (96u << 23);
    auto const u = bits(at_least(x, 0x1.2p-31f));
    auto const code = (u + select(has_bits(u, 1u << 20), U(half), U(half - 1u))) >> 20;
    return select(above, code, U(0u));
  }
};

/// 8-bit floats: E4M3 for slots of any sign, UE5M3 for non-negative ones. 1 byte and a scale of
/// 4 bytes per block.
struct float8 {
  static constexpr char const* name = "float8";
  static constexpr int block = default_block;
  template <range R>
  using codec = std::conditional_t<R == range::any, e4m3_codec, ue5m3_codec>;
};

}  // namespace memfit
