// The formats root8 and companded8: equal steps of a curve that is steep near zero.
// Used for moments: root8 wherever there is no reason for another format.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/concept.hpp"
#include "memfit/codec/line.hpp"
#include "memfit/core/types.hpp"

namespace memfit {

namespace detail {

/// Magnitudes n / (254 - n), n to 127: the inverse of 2 x / (1 + x) in 127 steps.
struct softsign_curve {
  static constexpr std::uint32_t last = 127;
  template <class F>
  MEMFIT_HD static F value(F const& n) {
    return n / (F(254.0f) - abs(n));
  }
  template <class F>
  MEMFIT_HD static F signed_value(F const& n) {
    return value(n);
  }
  /// The boundary below n solves u^2 - u w - 1/4 = 0 for u = 254 - n and w = 254 / (1 + a): then
  /// u is w + 1 / (4 w), less 1 / (16 w^3), which is too little to tell.
  template <class F>
  MEMFIT_HD static F line(F const& a) {
    F const s = a + F(1.0f);
    return fma(s, F(-1.0f / 1016.0f), F(254.0f + 256.5f + line_margin)) - F(254.0f) / s;
  }
};

/// Magnitudes n^2 / Last^2: the inverse of the square root in Last steps.
template <int Last>
struct square_curve {
  static constexpr std::uint32_t last = Last;
  template <class F>
  MEMFIT_HD static F value(F const& n) {
    constexpr float whole = Last * Last, inverse = 1.0f / whole;
    F const square = n * n;
    F const q = square * F(inverse);
    return fma(fma(-whole, q, square), inverse, q);
  }
  template <class F>
  MEMFIT_HD static F signed_value(F const& n) {
    F const magnitude = value(n);
    return select(n < F(0.0f), -magnitude, magnitude);
  }
  /// The boundary below n is (n - 1/2)^2 + 1/4 parts of Last^2.
  template <class F>
  MEMFIT_HD static F line(F const& a) {
    return sqrt(at_least(fma(a, static_cast<float>(Last * Last), -0.25f), 0.0f)) +
           F(256.5f + line_margin);
  }
};

/// Squares of these: the inverse of the fourth root in Last steps.
template <int Last>
struct fourth_power_curve {
  static constexpr std::uint32_t last = Last;
  template <class F>
  MEMFIT_HD static F value(F const& n) {
    F const square = square_curve<Last>::value(n);
    return square * square;
  }
  /// The boundary below n is (x^2 + 3/4)^2 - 1/2 parts of Last^4 for x = n - 1/2.
  template <class F>
  MEMFIT_HD static F line(F const& a) {
    constexpr auto whole = static_cast<float>(double{Last} * Last * Last * Last);
    F const square = sqrt(fma(a, whole, 0.5f)) - F(0.75f);
    return sqrt(at_least(square, 0.0f)) + F(256.5f + line_margin);
  }
};

/// The line of a magnitude, as a pattern; magnitudes above 1 count as 1.
template <class Curve, class F>
MEMFIT_HD inline uint_of<F> companded_line(F const& a) {
  return bits(Curve::line(from_bits<F>(smaller(bits(a), 0x3f800000u))));
}

/// The index of a magnitude.
template <class Curve, class F>
MEMFIT_HD inline uint_of<F> companded_index(F const& a) {
  auto const line = companded_line<Curve>(a);
  auto const clear = line_is_clear(line);
  auto index = (line >> line_unit_bits) - line_start;
  if (any<F>(!clear)) {
    auto const near = smaller(line_beside_boundary(line), Curve::last);
    auto const value = [](auto const& n) { return Curve::value(to_float(n)); };
    index = select(clear, index, nearest_index(a, near, value));
  }
  return index;
}

/// The same, but leaves what the line does not settle to the caller, in `unsure`.
template <class Curve, class F>
MEMFIT_HD inline uint_of<F> companded_index_nearly(F const& a, doubt_of<F>& unsure) {
  auto const line = companded_line<Curve>(a);
  note_unclear<F>(line, unsure);
  return (line >> line_unit_bits) - line_start;
}

/// Code last + n stands for the magnitude of |n| with n's sign, n from -last to last. Nearest in
/// value always; 1 byte.
template <class Curve>
struct signed_curve_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr bool tabulated = true;
  static constexpr std::uint32_t zero = Curve::last;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return Curve::signed_value(to_float(U(c - zero)));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return with_sign(x, companded_index<Curve>(F(abs(x))));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
    return with_sign(x, companded_index_nearly<Curve>(F(abs(x)), unsure));
  }

 private:
  template <class F>
  MEMFIT_HD static uint_of<F> with_sign(F const& x, uint_of<F> const& index) {
    return from_where_negative(2 * zero, uint_of<F>(index + zero), x);
  }
};

/// Code n stands for the n-th magnitude. Nearest in value always, negative values give 0; 1 byte.
template <class Curve>
struct magnitude_curve_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr bool tabulated = true;
  static constexpr std::uint32_t zero = 0;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return Curve::value(to_float(c));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return companded_index<Curve>(at_least(x, 0.0f));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
    return companded_index_nearly<Curve>(at_least(x, 0.0f), unsure);
  }
};

}  // namespace detail

/// Code 127 + n stands for n / (254 - |n|), n from -127 to 127, correctly rounded.
using softsign_codec = detail::signed_curve_codec<detail::softsign_curve>;

/// Code n stands for n^2 / 255^2, correctly rounded.
using square_codec = detail::magnitude_curve_codec<detail::square_curve<255>>;

/// Code 127 + n stands for n |n| / 127^2, n from -127 to 127, correctly rounded.
using signed_square_codec = detail::signed_curve_codec<detail::square_curve<127>>;

/// Code n stands for the square of the float nearest to n^2 / 255^2.
using fourth_power_codec = detail::magnitude_curve_codec<detail::fourth_power_curve<255>>;

/// 8 bits in equal steps of softsign, or of the square root for non-negative slots, as in
/// FlashOptim (arXiv 2602.23349). 1 byte and a scale of 2 bytes per block of 32: 2.125 bytes for
/// two moments.
struct companded8 {
  static constexpr int block = 32;
  using scale = bf16;
  template <range R>
  using codec = std::conditional_t<R == range::any, softsign_codec, square_codec>;
};

/// 8 bits in equal steps of the square root, or of the fourth root for non-negative slots, so that
/// a second moment is coded as finely, relative to its root, as a first one, over nine decades.
/// 1 byte and a scale of 2 bytes per block of 128: 2.031 bytes for two moments.
struct root8 {
  static constexpr int block = 128;
  using scale = bf16;
  template <range R>
  using codec = std::conditional_t<R == range::any, signed_square_codec, fourth_power_codec>;
};

}  // namespace memfit
