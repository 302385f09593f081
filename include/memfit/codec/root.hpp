// The format root8: equal steps of the square root, and of the fourth root for second moments.
// Used for moments: second ones span nine decades and more.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/curve.hpp"
#include "memfit/core/types.hpp"

namespace memfit {

namespace detail {

/// Values (n / 255)^4, as the rounded squares of what square_curve gives.
struct quartic_curve {
  static constexpr std::uint32_t last = 255;
  static constexpr bool tabulated = false;
  template <class F>
  MEMFIT_HD static F value(F const& n) {
    F const root = square_curve<255>::part(F(n * n));
    return product(root, root);
  }
  /// The boundary below n = m + 1/2 is m^4 + 3/2 m^2 + 1/16 = (m^2 + 3/4)^2 - 1/2 parts. Roots are
  /// taken of quarters: of m^2, and of the square of m^2 / 4.
  template <class F>
  MEMFIT_HD static F line(F const& a) {
    constexpr float whole = 255.0f * 255.0f * 255.0f * 255.0f;
    F const quarter = twice_root_nearly(fma(a, whole / 64, 0.5f / 64), -0.75f / 4);
    return twice_root_nearly(at_least(quarter, 0x1p-40f), 256.5f + line_margin);
  }
};

}  // namespace detail

/// 8 bits: 127 + n stands for n |n| / 127^2, in non-negative slots n for (n / 255)^4, down to
/// 2.4e-10. 1 byte and a scale of 2 bytes per block of 128: 2.031 bytes for two moments.
struct root8 {
  static constexpr char const* name = "root8";
  static constexpr int block = 128;
  using scale = bf16;
  template <range R>
  using codec =
      std::conditional_t<R == range::any, detail::signed_curve_codec<detail::square_curve<127>>,
                         detail::unsigned_curve_codec<detail::quartic_curve>>;
};

}  // namespace memfit
