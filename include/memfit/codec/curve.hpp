// Codecs of 8 bits whose values lie on a curve in equal steps.
// Used by the formats root8 and companded8, which name the curves.
#pragma once

#include <cstdint>

#include "memfit/codec/concept.hpp"
#include "memfit/codec/line.hpp"

namespace memfit::detail {

// A curve has `last`, the index of 1; `value(n)`, which increases and, on curves for either sign,
// is odd; `line(a)`, the index for a from 0 to 1 above which indices lie, as line.hpp has it: whole
// at the boundaries; and `tabulated`, whether values are quicker looked up than computed.

/// Values n |n| / Last^2, correctly rounded.
template <int Last>
struct square_curve {
  static constexpr std::uint32_t last = Last;
  static constexpr bool tabulated = false;
  template <class F>
  MEMFIT_HD static F value(F const& n) {
    return part(F(n * abs(n)));
  }
  /// A whole number up to Last^2 over Last^2, whose inverse takes two floats.
  template <class F>
  MEMFIT_HD static F part(F const& square) {
    constexpr double inverse = 1.0 / (Last * Last);
    constexpr auto high = static_cast<float>(inverse);
    constexpr auto low = static_cast<float>(inverse - double{high});
    return fma(square, high, product(square, F(low)));
  }
  /// The boundary below n is (n - 1/2)^2 + 1/4 parts.
  template <class F>
  MEMFIT_HD static F line(F const& a) {
    constexpr float whole = Last * Last;
    return twice_root_nearly(at_least(fma(a, whole / 4, -0.0625f), 0x1p-40f), 256.5f + line_margin);
  }
};

/// The index of a magnitude; those above 1 count as 1.
template <class Curve, class F>
MEMFIT_HD inline uint_of<F> curve_line(F const& a) {
  return bits(Curve::line(from_bits<F>(smaller(bits(a), 0x3f800000u))));
}
template <class Curve, class F>
MEMFIT_HD inline uint_of<F> curve_index(F const& a) {
  auto const line = curve_line<Curve>(a);
  auto const clear = line_is_clear(line);
  auto index = (line >> line_unit_bits) - line_start;
  if (any<F>(!clear)) {
    auto const beside = smaller(line_beside_boundary(line), uint_of<F>(Curve::last));
    auto const value = [](auto const& n) { return Curve::value(to_float(n)); };
    index = select(clear, index, nearest_index(a, beside, value));
  }
  return index;
}

/// The same, but leaves what the line does not settle to the caller, in `unsure`.
template <class Curve, class F>
MEMFIT_HD inline uint_of<F> curve_index_nearly(F const& a, doubt_of<F>& unsure) {
  auto const line = curve_line<Curve>(a);
  note_unclear<F>(line, unsure);
  return (line >> line_unit_bits) - line_start;
}

/// Code last + n stands for the value of n, from -last to last. Nearest in value always; 1 byte.
template <class Curve>
struct signed_curve_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr bool tabulated = Curve::tabulated;
  static constexpr std::uint32_t zero = Curve::last;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return Curve::value(to_float(U(c - zero)));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return with_sign(x, curve_index<Curve>(F(abs(x))));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
    return with_sign(x, curve_index_nearly<Curve>(F(abs(x)), unsure));
  }

 private:
  template <class F>
  MEMFIT_HD static uint_of<F> with_sign(F const& x, uint_of<F> const& index) {
    return from_where_negative(2 * zero, uint_of<F>(index + zero), x);
  }
};

/// Code n stands for the value of n, from 0 to last. Nearest in value always, negative values give
/// 0; 1 byte.
template <class Curve>
struct unsigned_curve_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr bool tabulated = Curve::tabulated;
  static constexpr std::uint32_t zero = 0;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return Curve::value(to_float(c));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return curve_index<Curve>(at_least(x, 0.0f));
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
    return curve_index_nearly<Curve>(at_least(x, 0.0f), unsure);
  }
};

}  // namespace memfit::detail
