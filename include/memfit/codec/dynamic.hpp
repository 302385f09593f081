// The format dynamic8: the dynamic map of 8-bit Adam, coded arithmetically without its table.
// Used for moments, and to read and write states of other programs that use this map.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/concept.hpp"
#include "memfit/codec/dynamic_wide.hpp"
#include "memfit/codec/line.hpp"

namespace memfit {

namespace detail {

/// Constants of one half of the map, per decade i = 0 … 6 and, as the eighth, the single value 1.
/// A magnitude's index counts the values from 0 upwards.
/// first: least float at least as near to the decade's first value as to the one before. slope and
/// offset: 256 + index as a line in |x|, on which boundaries lie 2^-13 above whole numbers. last:
/// index of the decade's last value, from line_start upwards.
struct dynamic_signed {
  static constexpr std::uint32_t shift = 0;  // index + shift = 2^exponent + place in the decade
  static constexpr std::uint32_t zero = 127;
  static constexpr float first_boundary = 0x1.27476ep-22f;  // between 0 and the next value
  MEMFIT_HD static constexpr float first_of(int i) {
    float const t[8] = {
        0.0f,           0x1.fe0704p-20f, 0x1.e68a0cp-17f, 0x1.00e6b2p-13f, 0x1.23a29ep-10f,
        0x1.5a1cacp-7f, 0x1.a51ebap-4f,  0x1.fe3334p-1f};
    return t[i];
  }
  template <class U>
  MEMFIT_HD static auto first(U const& i) {
    float const t[8] = {first_of(0), first_of(1), first_of(2), first_of(3),
                        first_of(4), first_of(5), first_of(6), first_of(7)};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto slope(U const& i) {
    float const t[8] = {0x1.bbe45cp+21f, 0x1.b2071cp+17f, 0x1.5b38e4p+15f, 0x1.15c71cp+13f,
                        0x1.bc71c8p+10f, 0x1.638e38p+8f,  0x1.1c71c8p+6f,  0.0f};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto offset(U const& i) {
    float const t[8] = {0x1.000008p8f, 0x1.01c724p8f, 0x1.038e4p8f,  0x1.071c7ap8f,
                        0x1.0e38ecp8f, 0x1.1c71dp8f,  0x1.38e396p8f, 0x1.808p8f};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto last(U const& i) {
    constexpr std::uint32_t s = line_start;
    std::uint32_t const t[8] = {s + 1, s + 3, s + 7, s + 15, s + 31, s + 63, s + 127, s + 128};
    return lookup(t, i);
  }
};

struct dynamic_unsigned {
  static constexpr std::uint32_t shift = 1;
  static constexpr std::uint32_t zero = 0;
  static constexpr float first_boundary = 0x1.5cf754p-23f;
  MEMFIT_HD static constexpr float first_of(int i) {
    float const t[8] = {
        0.0f,           0x1.853b3cp-20f, 0x1.9b0ab2p-17f, 0x1.d29dc8p-14f, 0x1.14e3bep-10f,
        0x1.50e562p-7f, 0x1.9f5c2ap-4f,  0x1.ff199ap-1f};
    return t[i];
  }
  template <class U>
  MEMFIT_HD static auto first(U const& i) {
    float const t[8] = {first_of(0), first_of(1), first_of(2), first_of(3),
                        first_of(4), first_of(5), first_of(6), first_of(7)};
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
    float const t[8] = {0x1.0094aep8f, 0x1.028e4p8f,  0x1.061c7ap8f, 0x1.0d38ecp8f,
                        0x1.1b71dp8f,  0x1.37e396p8f, 0x1.70c724p8f, 0x1.ff8p8f};
    return lookup(t, i);
  }
  template <class U>
  MEMFIT_HD static auto last(U const& i) {
    constexpr std::uint32_t s = line_start;
    std::uint32_t const t[8] = {s + 2, s + 6, s + 14, s + 30, s + 62, s + 126, s + 254, s + 255};
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
  if constexpr (looks_up_widely<F>) {
    return dynamic_value_at<Half>(dynamic_place<Half>(index, 0.0f));
  } else {
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
    float const half_power_of_ten[8] = {
        dynamic_half_power(0), dynamic_half_power(1), dynamic_half_power(2), dynamic_half_power(3),
        dynamic_half_power(4), dynamic_half_power(5), dynamic_half_power(6), 0.0f};
    auto const decade = (exponent >> 23) - (127u + Half::shift);
    auto const value = (low + high) * lookup(half_power_of_ten, decade);
    auto const one = place == U(128u << Half::shift);
    return select(index == U(0u), F(0.0f), select(one, F(1.0f), value));
  }
}

/// A magnitude on its way to an index.
template <class F>
struct dynamic_point {
  F a;              // at least 1e-7, which has index 0
  uint_of<F> line;  // pattern of the line's value
  uint_of<F> last;  // index of the decade's last value, from line_start upwards
};

/// Finds the decade and the point on its line. Values below `least` count as that.
template <class Half, class F>
MEMFIT_HD inline dynamic_point<F> dynamic_locate(F const& x, float least) {
  dynamic_point<F> at;
  at.a = at_least(x, least);
  // The pattern of a float is nearly its logarithm: this gives the decade or the one above.
  auto const guess = truncate(fma(to_float(bits(at.a)), 0x1.344136p-25f, -31.2008f));
  auto const decade = subtract_where(at.a < Half::first(guess), guess, 1u);
  at.line = bits(fma(at.a, Half::slope(decade), Half::offset(decade)));
  at.last = Half::last(decade);
  return at;
}

/// The index by the line, from line_start upwards.
template <class F>
MEMFIT_HD inline uint_of<F> dynamic_by_line(dynamic_point<F> const& at) {
  return smaller(at.line >> line_unit_bits, at.last);
}

/// This index or the one below it, decided exactly.
template <class Half, class F>
MEMFIT_HD inline uint_of<F> dynamic_nearest(F const& a, uint_of<F> const& index) {
  return nearest_index(a, index, [](auto const& i) { return dynamic_magnitude<Half>(i); });
}

/// The index beside the boundary nearest to the point, from line_start upwards.
template <class Half, class F>
MEMFIT_HD inline uint_of<F> dynamic_beside_boundary(dynamic_point<F> const& at) {
  auto const beside = smaller(line_beside_boundary(at.line), uint_of<F>(at.last - line_start));
  return dynamic_nearest<Half>(at.a, beside) + line_start;
}

/// The code of a magnitude, in the low byte.
template <class Half, class F>
MEMFIT_HD inline uint_of<F> dynamic_code(F const& x, float least) {
  if constexpr (looks_up_widely<F>) {
    auto const at = dynamic_spot_of<Half>(at_least(x, least));
    auto const unsure = at.rest < uint_of<F>(dynamic_least_rest);
    if (any<F>(unsure))
      return select(unsure, dynamic_nearest<Half>(at.a, at.code - Half::zero) + Half::zero,
                    at.code);
    return at.code;
  } else {
    auto const at = dynamic_locate<Half>(x, least);
    auto const clear = line_is_clear(at.line);
    auto index = dynamic_by_line(at);
    if (any<F>(!clear)) index = select(clear, index, dynamic_beside_boundary<Half>(at));
    return index + Half::zero;
  }
}

/// As dynamic_code, but leaves what the line does not settle to the caller, in `unsure`.
template <class Half, class F>
MEMFIT_HD inline uint_of<F> dynamic_code_nearly(F const& x, float least, doubt_of<F>& unsure) {
  if constexpr (looks_up_widely<F>) {
    auto const at = dynamic_spot_of<Half>(at_least(x, least));
    unsure.note(at.rest, dynamic_least_rest);
    return at.code;
  } else {
    auto const at = dynamic_locate<Half>(x, least);
    unsure = unsure | !line_is_clear(at.line);
    return dynamic_by_line(at) + Half::zero;
  }
}

/// A magnitude of index 0, and the unsigned half's value of index 1.
inline constexpr float dynamic_nothing = 0x1.ad7f2ap-24f;
inline constexpr float dynamic_least_unsigned = 0x1.5cf754p-22f;

/// Clears what lies above a code, except in lanes, whose stores take the low byte anyway.
template <class U>
MEMFIT_HD inline U low_byte(U const& c) {
  if constexpr (std::is_arithmetic_v<U>)
    return c & 0xffu;
  else
    return c;
}

}  // namespace detail

/// Signed map: code 127 + k for index k of the magnitude, minus for negative values; code 0 is
/// -0.99296875, 127 is 0, 255 is 1. Nearest always; 1 byte.
struct dynamic_signed_codec {
  using code = std::uint8_t;
  using half = detail::dynamic_signed;
  static constexpr bool scaled = true;
  static constexpr bool tabulated = true;
  static constexpr std::uint32_t zero = half::zero;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    if constexpr (looks_up_widely<value_of<U>>) {
      auto const place = detail::dynamic_place<half>(c, static_cast<float>(zero));
      return with_sign_of(place, detail::dynamic_value_at<half>(place));
    } else {
      auto const negative = c < U(zero);
      auto const index = select(negative, zero - c, c - zero);
      auto const magnitude = detail::dynamic_magnitude<half>(index);
      return from_bits<value_of<U>>(bits(magnitude) | select(negative, U(0x80000000u), U(0u)));
    }
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return with_sign(x, detail::dynamic_code<half>(magnitude(x), detail::dynamic_nothing));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
    return with_sign(
        x, detail::dynamic_code_nearly<half>(magnitude(x), detail::dynamic_nothing, unsure));
  }

 private:
  /// There is no -1.
  template <class F>
  MEMFIT_HD static F magnitude(F const& x) {
    return abs(at_least(x, -0.99f));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> with_sign(F const& x, uint_of<F> const& code) {
    return detail::low_byte(from_where_negative(2 * zero, code, x));
  }
};

/// Non-negative map: the code is the index of the value; 0 is 0, 1 is 3.25e-7, 255 is 1. Nearest
/// always, negative values give 0; 1 byte.
struct dynamic_unsigned_codec {
  using code = std::uint8_t;
  using half = detail::dynamic_unsigned;
  static constexpr bool scaled = true;
  static constexpr bool tabulated = true;
  static constexpr std::uint32_t zero = half::zero;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return detail::dynamic_magnitude<half>(c);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return detail::low_byte(detail::dynamic_code<half>(x, detail::dynamic_nothing));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
    return detail::low_byte(detail::dynamic_code_nearly<half>(x, detail::dynamic_nothing, unsure));
  }
  /// The nearest code above zero, or zero where the mask does not hold.
  template <class F>
  MEMFIT_HD static uint_of<F> encode_above(F const& x, mask_of<F> const& above) {
    auto const code = detail::dynamic_code<half>(x, detail::dynamic_least_unsigned);
    return detail::low_byte(select(above, code, uint_of<F>(zero)));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_above_nearly(F const& x, mask_of<F> const& above,
                                                  doubt_of<F>& unsure) {
    auto const code = detail::dynamic_code_nearly<half>(x, detail::dynamic_least_unsigned, unsure);
    return detail::low_byte(select(above, code, uint_of<F>(zero)));
  }
};

/// The 256-value dynamic map of "8-bit Optimizers via Block-wise Quantization" (arXiv 2110.02861),
/// equal to the table that bitsandbytes publishes. 1 byte and a scale of 4 bytes per block.
struct dynamic8 {
  static constexpr char const* name = "dynamic8";
  static constexpr int block = default_block;
  template <range R>
  using codec = std::conditional_t<R == range::any, dynamic_signed_codec, dynamic_unsigned_codec>;
};

}  // namespace memfit
