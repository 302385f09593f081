// The format companded8: equal steps of softsign and of the square root, in small blocks.
// Used for moments where close values matter more than small ones.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/curve.hpp"
#include "memfit/core/types.hpp"

namespace memfit {

namespace detail {

/// Values n / (254 - |n|), correctly rounded: the inverse of 2 x / (1 + |x|) in 127 steps.
struct softsign_curve {
  static constexpr std::uint32_t last = 127;
  static constexpr bool tabulated = true;
  template <class F>
  MEMFIT_HD static F value(F const& n) {
    return quotient_of_counts(n, F(254.0f) - abs(n));
  }
  /// The boundary below n solves u^2 - u w - 1/4 = 0 for u = 254.5 - n and w = 254 / (1 + a): then
  /// u is w + 1 / (4 w), less 1 / (16 w^3), which is too little to tell.
  template <class F>
  MEMFIT_HD static F line(F const& a) {
    F const s = a + F(1.0f);
    return fma(s, F(-1.0f / 1016.0f), F(254.0f + 256.5f + line_margin)) -
           quotient_nearly(F(254.0f), s);
  }
};

}  // namespace detail

/// 8 bits in equal steps of softsign, or of the square root for non-negative slots, as in
/// FlashOptim (arXiv 2602.23349). 1 byte and a scale of 2 bytes per block of 32: 2.125 bytes for
/// two moments.
struct companded8 {
  static constexpr char const* name = "companded8";
  static constexpr int block = 32;
  using scale = bf16;
  template <range R>
  using codec =
      std::conditional_t<R == range::any, detail::signed_curve_codec<detail::softsign_curve>,
                         detail::unsigned_curve_codec<detail::square_curve<255>>>;
};

}  // namespace memfit
