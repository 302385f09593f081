// bf16 and fp16 with more bits of mantissa, rounded to nearest or at random.
// Used by the parameter columns that round at random or keep a part of the value beside.
#pragma once

#include <cstdint>

#include "memfit/core/types.hpp"

namespace memfit::detail {

/// Scalar with `More` bits of mantissa below its own: patterns of 16 + More bits.
///
/// `nearest(x)` breaks ties to even; `random(x, noise)` gives one of the two neighbours, the nearer
/// the likelier, by the lowest bits of the noise. A NaN becomes the usual quiet one. From
/// `overflow` on, or `random_overflow`, a magnitude's pattern may be nearest to Scalar's infinity.
template <class Scalar, int More>
struct extended;

/// 8 bits of exponent, 7 + More of mantissa; all 32 bits are a float.
template <int More>
struct extended<bf16, More> {
  static constexpr int dropped = 16 - More;
  static constexpr std::uint32_t unit = 1u << dropped;
  static constexpr std::uint32_t beyond = More > 0 ? 0x7f7f8000u : 0x7f800000u;
  static constexpr std::uint32_t overflow = beyond - unit / 2, random_overflow = beyond - unit + 1u;

  template <class F>
  MEMFIT_HD static uint_of<F> nearest(F const& x) {
    auto const u = bits(x);
    if constexpr (dropped == 0)
      return unless_nan(u, u);
    else
      return unless_nan(u, (u + (unit / 2 - 1u) + ((u >> dropped) & 1u)) >> dropped);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> random(F const& x, uint_of<F> const& noise) {
    using U = uint_of<F>;
    auto const u = bits(x);
    auto const finite = (u & 0x7fffffffu) < U(0x7f800000u);
    return unless_nan(u, (u + select(finite, noise & (unit - 1u), U(0u))) >> dropped);
  }
  template <class U>
  MEMFIT_HD static value_of<U> value(U const& w) {
    return from_bits<value_of<U>>(w << dropped);
  }

 private:
  template <class U>
  MEMFIT_HD static U unless_nan(U const& u, U const& w) {
    auto const nan = (u & 0x7fffffffu) > U(0x7f800000u);
    return select(nan, U(0x7fc0u << More), w);
  }
};

/// 5 bits of exponent, 10 + More of mantissa. With 16 more, 3 of them exceed a float's.
template <int More>
struct extended<fp16, More> {
  static constexpr int dropped = 13 - More;
  static constexpr std::uint32_t unit = dropped > 0 ? 1u << (dropped > 0 ? dropped : 0) : 1u;
  static constexpr std::uint32_t beyond = More > 0 ? 0x477ff000u : 0x47800000u;
  static constexpr std::uint32_t overflow = beyond - unit / 2, random_overflow = beyond - unit + 1u;

  template <class F>
  MEMFIT_HD static uint_of<F> nearest(F const& x) {
    using U = uint_of<F>;
    auto const u = bits(x);
    auto const a = u & 0x7fffffffu;
    auto const finite = select(a < U(least_normal), nearest_tiny<F>(a), nearest_normal(a));
    auto const nan = a > U(0x7f800000u);
    auto const other = select(nan, U(0x7e00u << More), U(0x7c00u << More));
    return sign(u) | select(a < U(overflow), finite, other);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> random(F const& x, uint_of<F> const& noise) {
    using U = uint_of<F>;
    auto const u = bits(x);
    auto const a = u & 0x7fffffffu;
    auto const some = noise & (unit - 1u);
    auto const tiny = a < U(least_normal);
    // There the spacing is even: in units finer by the bits dropped there are as many too many.
    auto const units = truncate(product(from_bits<F>(select(tiny, a, U(0u))), F(0x1p37f)));
    auto const finite = select(tiny, (units + some) >> dropped, ((a + some) >> dropped) - rebias);
    return select(a < U(random_overflow), sign(u) | finite, nearest(x));
  }
  template <class U>
  MEMFIT_HD static value_of<U> value(U const& w) {
    using F = value_of<U>;
    auto const a = w & ((0x8000u << More) - 1u);
    auto const tiny = product(to_float(a), F(1.0f / units_of_one));
    auto const special = select(a < U(0x7c00u << More), U(112u << 23), U(224u << 23));
    auto const magnitude = select(a < U(0x400u << More), bits(tiny), widened(a) + special);
    return from_bits<F>(((w << (16 - More)) & 0x80000000u) | magnitude);
  }

 private:
  static constexpr std::uint32_t least_normal = 0x38800000u;  // 2^-14, as a float
  static constexpr std::uint32_t rebias = 112u << (10 + More);
  /// Units of the spacing below 2^-14 in 1.
  static constexpr float units_of_one = static_cast<float>(std::uint64_t{1} << (24 + More));

  template <class U>
  MEMFIT_HD static U sign(U const& u) {
    return (u & 0x80000000u) >> (16 - More);
  }
  template <class U>
  MEMFIT_HD static U widened(U const& a) {
    if constexpr (dropped > 0)
      return a << dropped;
    else
      return a >> -dropped;
  }
  template <class U>
  MEMFIT_HD static U nearest_normal(U const& a) {
    if constexpr (dropped > 0)
      return ((a + (unit / 2 - 1u) + ((a >> dropped) & 1u)) >> dropped) - rebias;
    else
      return (a - (112u << 23)) << -dropped;
  }
  template <class F>
  MEMFIT_HD static uint_of<F> nearest_tiny(uint_of<F> const& a) {
    using U = uint_of<F>;
    if constexpr (dropped > 0) {
      // Added to it, a value is rounded to the spacing of floats there.
      constexpr std::uint32_t coarse = (126u - More) << 23;
      return bits(from_bits<F>(a) + from_bits<F>(U(coarse))) - coarse;
    } else {
      auto const tiny = select(a < U(least_normal), a, U(0u));
      auto const n = product(from_bits<F>(tiny), F(units_of_one));
      auto const rounded = (n + F(0x1p23f)) - F(0x1p23f);
      return truncate(select(n < F(0x1p23f), rounded, n));
    }
  }
};

}  // namespace memfit::detail
