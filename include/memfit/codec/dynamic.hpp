// The format dynamic8: the dynamic map of 8-bit Adam, coded arithmetically without its table.
// Used for moments, and to read and write states of other programs that use this map.
#pragma once

#include <cstdint>

#include "memfit/codec/concept.hpp"

namespace memfit {

namespace detail {

/// Constants of one half of the map, per decade i = 0 … 6 and, as the eighth, the single value 1.
/// A magnitude's index counts the values from 0 upwards.
struct dynamic_signed {
  static constexpr std::uint32_t shift = 0;  // index + shift = 2^exponent + place in the decade
  static constexpr std::uint32_t zero = 127;
  /// Least float at least as near to the decade's first value as to the one before.
  template <class U>
  MEMFIT_HD static auto first(U const& i) {
    float const t[8] = {
        0.0f,           0x1.fe0704p-20f, 0x1.e68a0cp-17f, 0x1.00e6b2p-13f, 0x1.23a29ep-10f,
        0x1.5a1cacp-7f, 0x1.a51ebap-4f,  0x1.fe3334p-1f};
    return lookup(t, i);
  }
  /// Index within the decade as a line: slope * |x| + offset.
  template <class U>
  MEMFIT_HD static auto slope(U const& i) {
    float const t[8] = {0x1.bbe45cp+21f, 0x1.b2071cp+17f, 0x1.5b38e4p+15f, 0x1.15c71cp+13f,
                        0x1.bc71c8p+10f, 0x1.638e38p+8f,  0x1.1c71c8p+6f,  0.0f};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto offset(U const& i) {
    float const t[8] = {0.0f,           0x1.c71c72p+0f, 0x1.c71c72p+1f, 0x1.c71c72p+2f,
                        0x1.c71c72p+3f, 0x1.c71c72p+4f, 0x1.c71c72p+5f, 128.0f};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto last(U const& i) {
    std::uint32_t const t[8] = {1, 3, 7, 15, 31, 63, 127, 128};
    return lookup(t, i);
  }
};

struct dynamic_unsigned {
  static constexpr std::uint32_t shift = 1;
  static constexpr std::uint32_t zero = 0;
  template <class U>
  MEMFIT_HD static auto first(U const& i) {
    float const t[8] = {
        0.0f,           0x1.853b3cp-20f, 0x1.9b0ab2p-17f, 0x1.d29dc8p-14f, 0x1.14e3bep-10f,
        0x1.50e562p-7f, 0x1.9f5c2ap-4f,  0x1.ff199ap-1f};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto slope(U const& i) {
    float const t[8] = {0x1.3b052ap+21f, 0x1.b2071cp+18f, 0x1.5b38e4p+16f, 0x1.15c71cp+14f,
                        0x1.bc71c8p+11f, 0x1.638e38p+9f,  0x1.1c71c8p+7f,  0.0f};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto offset(U const& i) {
    float const t[8] = {0x1.294a52p-1f, 0x1.471c72p+1f, 0x1.871c72p+2f, 0x1.a71c72p+3f,
                        0x1.b71c72p+4f, 0x1.bf1c72p+5f, 0x1.c31c72p+6f, 255.0f};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto last(U const& i) {
    std::uint32_t const t[8] = {2, 6, 14, 30, 62, 126, 254, 255};
    return lookup(t, i);
  }
};

/// The map's value for a magnitude index, to the last bit of the published table.
///
/// A decade's values are means of neighbouring boundaries of n equal parts of [0.1, 1], counted
/// from the nearer end as the published generator does, times a power of ten.
template <class Half, class U>
MEMFIT_HD inline value_of<U> dynamic_magnitude(U const& index) {
  using F = value_of<U>;
  auto const place = index + Half::shift;
  auto const u = bits(to_float(place));
  auto const exponent = u & 0x7f800000u;
  auto const mantissa = from_bits<F>((u & 0x007fffffu) | 0x3f800000u);
  auto const upper = mantissa >= F(1.5f);
  auto const position = mantissa - select(upper, F(2.0f), F(1.0f));
  auto const part = from_bits<F>(0x7f000000u - exponent);
  auto const origin = select(upper, F(1.0f), F(0.1f));
  auto const low = fma(0.9f, position, origin);
  auto const high = fma(0.9f, position + part, origin);
  float const half_power_of_ten[8] = {0x1.0c6f7ap-21f,
                                      0x1.4f8b58p-18f,
                                      0x1.a36e2ep-15f,
                                      0x1.0624dep-11f,
                                      0x1.47ae14p-8f,
                                      0x1.99999ap-5f,
                                      0.5f,
                                      0.0f};
  auto const decade = (exponent >> 23) - (127u + Half::shift);
  auto const value = (low + high) * lookup(half_power_of_ten, decade);
  auto const one = place == U(128u << Half::shift);
  return select(index == U(0u), F(0.0f), select(one, F(1.0f), value));
}

/// Decides between the two indices beside the boundary nearest to the line value t, exactly.
template <class Half, class F>
MEMFIT_HD inline uint_of<F> dynamic_beside_boundary(F const& a, F const& t,
                                                    uint_of<F> const& last) {
  using U = uint_of<F>;
  auto const above = max(min(truncate(t + 0.5f), last), 1u);
  auto const low = dynamic_magnitude<Half>(U(above - 1u));
  auto const high = dynamic_magnitude<Half>(above);
  auto const sum = low + high;
  auto const lost = low - (sum - high);
  auto const twice = a + a;
  auto const reaches = (twice > sum) | ((twice == sum) & (lost <= F(0.0f)));
  return above - select(reaches, U(0u), U(1u));
}

/// Index of the value nearest to a in [0, 1]; of two equally near ones the larger.
template <class Half, class F>
MEMFIT_HD inline uint_of<F> dynamic_index(F const& a) {
  using U = uint_of<F>;
  // The pattern of a float is nearly its logarithm: this gives the decade or the one above.
  auto const pattern = to_float(max(bits(a), 0x33d6bf95u));
  auto const guess = truncate(fma(pattern, 0x1.344136p-25f, -31.2008f));
  auto const decade = guess - select(a < Half::first(guess), U(1u), U(0u));
  auto const t = fma(a, Half::slope(decade), Half::offset(decade));
  auto const last = Half::last(decade);
  auto const whole = truncate(t);
  // The line is off by less than 2^-14: only this near to a boundary can it pick a wrong side.
  auto const from_middle = abs((t - to_float(whole)) - 0.5f);
  auto const near = from_middle > F(0.5f - 0x1p-13f);
  auto const index = min(whole, last);
  if (any<F>(near)) return select(near, dynamic_beside_boundary<Half>(a, t, last), index);
  return index;
}

}  // namespace detail

/// Signed map: code 127 + k for index k of the magnitude, minus for negative values; code 0 is
/// -0.99296875, 127 is 0, 255 is 1. Nearest always; 1 byte.
struct dynamic_signed_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr std::uint32_t zero = detail::dynamic_signed::zero;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    auto const negative = c < U(zero);
    auto const index = select(negative, zero - c, c - zero);
    auto const magnitude = detail::dynamic_magnitude<detail::dynamic_signed>(index);
    return from_bits<value_of<U>>(bits(magnitude) | select(negative, U(0x80000000u), U(0u)));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    auto const index = detail::dynamic_index<detail::dynamic_signed>(abs(x));
    return select(x < F(0.0f), zero - min(index, 127u), zero + index);
  }
};

/// Non-negative map: the code is the index of the value; 0 is 0, 1 is 3.25e-7, 255 is 1. Nearest
/// always, negative values give 0; 1 byte.
struct dynamic_unsigned_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr std::uint32_t zero = detail::dynamic_unsigned::zero;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return detail::dynamic_magnitude<detail::dynamic_unsigned>(c);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return detail::dynamic_index<detail::dynamic_unsigned>(select(x > F(0.0f), x, F(0.0f)));
  }
};

/// The 256-value dynamic map of "8-bit Optimizers via Block-wise Quantization" (arXiv 2110.02861),
/// equal to the table that bitsandbytes publishes. 1 byte and a scale of 4 bytes per block.
struct dynamic8 {
  static constexpr int block = default_block;
  template <range R>
  using codec = std::conditional_t<R == range::any, dynamic_signed_codec, dynamic_unsigned_codec>;
};

}  // namespace memfit
