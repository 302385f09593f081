// The format packed4: two codes of 4 bits to a byte.
// Used for moments where bytes count most.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "memfit/codec/concept.hpp"
#include "memfit/core/types.hpp"

namespace memfit {

namespace detail {

// Tables are aggregates that functions return, for the reason given in dynamic_wide.hpp.

/// One number for each 4-bit code.
struct of_half_bytes {
  float at[16];
};

/// The least float that is nearer to the upper of two values than to the lower, or as near.
MEMFIT_HD constexpr float boundary_between(float low, float high) {
  double const middle = (double{low} + double{high}) / 2;
  auto const rounded = static_cast<float>(middle);
  return double{rounded} >= middle ? rounded
                                   : static_cast<float>(double{rounded} * (1 + 0x1.8p-24));
}
MEMFIT_HD constexpr of_half_bytes boundaries_of(of_half_bytes const& values) {
  of_half_bytes b{};
  for (int c = 1; c < 16; ++c) b.at[c] = boundary_between(values.at[c - 1], values.at[c]);
  return b;
}

/// Code 7 + k, k from -7 to 7, stands for a float of two exponent bits and one mantissa bit, in
/// twelfths; code 15 for nothing.
MEMFIT_HD constexpr of_half_bytes packed_signed_values() {
  float const twelfths[9] = {0, 1, 2, 3, 4, 6, 8, 12, 24};
  of_half_bytes v{};
  for (int k = 0; k < 9; ++k) v.at[7 + k] = twelfths[k] / 12;
  for (int k = 1; k < 8; ++k) v.at[7 - k] = -v.at[7 + k];
  return v;
}

/// Code 0 is 0, codes 1 to 15 are levels in equal ratios from 1/100 to 1.
struct packed_levels {
  static constexpr double ratio = 1.389495494373138;
  static constexpr double log2_ratio = 0.47456115;
  static constexpr float boundary_offset = 0.459067f;  // -log((1 + 1 / ratio) / 2) / log(ratio)
  MEMFIT_HD static constexpr of_half_bytes values() {
    of_half_bytes v{};
    double x = 1.0;
    for (int c = 15; c > 0; --c, x /= ratio) v.at[c] = static_cast<float>(x);
    return v;
  }
};

/// The last code, from 1, whose threshold x reaches, for x from the first threshold to 1.
/// `offset`: how far thresholds lie below the levels, in codes.
template <class F>
MEMFIT_HD inline uint_of<F> packed_code(F const& x, float offset, of_half_bytes const& threshold) {
  constexpr auto slope = static_cast<float>(0x1p-23 / packed_levels::log2_ratio);
  constexpr auto one = static_cast<float>(127.0 / packed_levels::log2_ratio);
  // The pattern of a float is nearly its logarithm, at most 0.0861 less: this is the code or the
  // one above.
  constexpr auto lost = static_cast<float>(0.0862 / packed_levels::log2_ratio);
  auto const guess = truncate(fma(to_float(bits(x)), slope, 15.0f - one + lost + offset));
  return subtract_where(x < lookup(threshold.at, guess), guess, 1u);
}

}  // namespace detail

/// Code 7 + k for the k-th of the magnitudes 1, 2, 3, 4, 6, 8 and 12 twelfths, minus for negative
/// ones; 7 is 0. Nearest always; half a byte.
struct packed_signed_codec {
  using code = std::uint8_t;
  static constexpr int width = 4;
  static constexpr bool scaled = true;
  static constexpr std::uint32_t zero = 7;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    static constexpr auto values = detail::packed_signed_values();
    return lookup(values.at, c);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    auto const code = reached(F(abs(x)), std::make_integer_sequence<int, 7>());
    return from_where_negative(2 * zero, code, x);
  }

 private:
  template <class F, int... K>
  MEMFIT_HD static uint_of<F> reached(F const& a, std::integer_sequence<int, K...>) {
    constexpr auto boundaries = detail::boundaries_of(detail::packed_signed_values());
    auto code = uint_of<F>(zero);
    ((code = next_where_at_least(code, a, F(boundaries.at[zero + 1 + K]))), ...);
    return code;
  }
};

/// Levels of equal ratio: code 0 is 0, 1 is 1/100, 15 is 1. Nearest always; half a byte.
struct packed_unsigned_codec {
  using code = std::uint8_t;
  static constexpr int width = 4;
  static constexpr bool scaled = true;
  static constexpr std::uint32_t zero = 0;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    static constexpr auto values = levels::values();
    return lookup(values.at, c);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    constexpr auto boundaries = detail::boundaries_of(levels::values());
    return encode_above(x, x >= F(boundaries.at[1]));
  }
  /// The nearest code above zero, or zero where the mask does not hold.
  template <class F>
  MEMFIT_HD static uint_of<F> encode_above(F const& x, mask_of<F> const& above) {
    static constexpr auto boundaries = detail::boundaries_of(levels::values());
    auto const code =
        detail::packed_code(at_least(x, least()), levels::boundary_offset, boundaries);
    return select(above, code, uint_of<F>(0u));
  }
  /// The code of the largest value that is not above x.
  template <class F>
  MEMFIT_HD static uint_of<F> encode_below(F const& x) {
    static constexpr auto values = levels::values();
    auto const code = detail::packed_code(at_least(x, least()), 0.0f, values);
    return select(x < F(least()), uint_of<F>(0u), code);
  }

 private:
  using levels = detail::packed_levels;
  /// The value of code 1.
  MEMFIT_HD static constexpr float least() { return levels::values().at[1]; }
};

/// 4 bits: floats of two exponent bits and one mantissa bit, and levels of equal ratio for
/// non-negative slots, whose moments are rounded at random. Half a byte and a scale of 2 bytes per
/// block of 64: 1.0625 bytes for two moments.
struct packed4 {
  static constexpr char const* name = "packed4";
  static constexpr int block = 64;
  using scale = bf16;
  template <range R>
  using codec = std::conditional_t<R == range::any, packed_signed_codec, packed_unsigned_codec>;
  template <range R>
  static constexpr bool at_random = R == range::non_negative;
};

}  // namespace memfit
