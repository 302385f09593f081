// The format companded8: equal steps of a curve that is steep near zero, in small blocks.
// Used for moments where close values matter more than small ones.
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
  /// The boundary below n solves u^2 - u w - 1/4 = 0 for u = 254 - n and w = 254 / (1 + a): then
  /// u is w + 1 / (4 w), less 1 / (16 w^3), which is too little to tell.
  template <class F>
  MEMFIT_HD static F line(F const& a) {
    F const s = a + F(1.0f);
    return fma(s, F(-1.0f / 1016.0f), F(254.0f + 256.5f + line_margin)) - F(254.0f) / s;
  }
};

/// Magnitudes n^2 / 65025, n to 255: the inverse of the square root in 255 steps.
struct square_curve {
  static constexpr std::uint32_t last = 255;
  template <class F>
  MEMFIT_HD static F value(F const& n) {
    constexpr float whole = 65025.0f, inverse = 1.0f / whole;
    F const square = n * n;
    F const q = square * F(inverse);
    return fma(fma(-whole, q, square), inverse, q);
  }
  /// The boundary below n is (n - 1/2)^2 + 1/4 parts of 65025.
  template <class F>
  MEMFIT_HD static F line(F const& a) {
    return sqrt(at_least(fma(a, 65025.0f, -0.25f), 0.0f)) + F(256.5f + line_margin);
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

}  // namespace detail

/// Code 127 + n stands for n / (254 - |n|), n from -127 to 127, correctly rounded. Nearest in value
/// always; 1 byte.
struct softsign_codec {
  using code = std::uint8_t;
  using curve = detail::softsign_curve;
  static constexpr bool scaled = true;
  static constexpr bool tabulated = true;
  static constexpr std::uint32_t zero = curve::last;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return curve::value(to_float(U(c - zero)));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return with_sign(x, detail::companded_index<curve>(F(abs(x))));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
    return with_sign(x, detail::companded_index_nearly<curve>(F(abs(x)), unsure));
  }

 private:
  template <class F>
  MEMFIT_HD static uint_of<F> with_sign(F const& x, uint_of<F> const& index) {
    return from_where_negative(2 * zero, uint_of<F>(index + zero), x);
  }
};

/// Code n stands for n^2 / 255^2, correctly rounded. Nearest in value always, negative values give
/// 0; 1 byte.
struct square_codec {
  using code = std::uint8_t;
  using curve = detail::square_curve;
  static constexpr bool scaled = true;
  static constexpr bool tabulated = true;
  static constexpr std::uint32_t zero = 0;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return curve::value(to_float(c));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return detail::companded_index<curve>(at_least(x, 0.0f));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
    return detail::companded_index_nearly<curve>(at_least(x, 0.0f), unsure);
  }
};

/// 8 bits in equal steps of softsign, or of the square root for non-negative slots, as in
/// FlashOptim (arXiv 2602.23349). 1 byte and a scale of 2 bytes per block of 32: 2.125 bytes for
/// two moments.
struct companded8 {
  static constexpr int block = 32;
  using scale = bf16;
  template <range R>
  using codec = std::conditional_t<R == range::any, softsign_codec, square_codec>;
};

}  // namespace memfit
