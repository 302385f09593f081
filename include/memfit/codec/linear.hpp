// The format linear8: equal steps relative to the largest magnitude of their block.
// Used as the simple control against which the other formats are judged.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/concept.hpp"

namespace memfit {

/// `Levels` equal steps from 0 to 1; code c stands for (c - Offset) / Levels, correctly rounded.
/// Encoding rounds to nearest, ties to the even code distance from zero, and clamps to the ends.
template <int Levels, int Offset>
struct linear_codec {
  using code = std::uint8_t;
  static constexpr bool scaled = true;
  static constexpr std::uint32_t zero = Offset;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    using F = value_of<U>;
    constexpr float levels = Levels;
    constexpr float inverse = 1.0f / levels;
    auto const n = to_float(c - static_cast<std::uint32_t>(Offset));
    F const q = n * inverse;
    return fma(fma(-levels, q, n), inverse, q);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    using U = uint_of<F>;
    constexpr float lowest = Offset > 0 ? -1.0f : 0.0f;
    auto const inside = select(x < F(lowest), F(lowest), select(x > F(1.0f), F(1.0f), x));
    // 1.5 * 2^23: adding it rounds to whole numbers and leaves them in the low bits.
    auto const n = bits(fma(inside, static_cast<float>(Levels), 12582912.0f)) - 0x4b400000u;
    return (n + static_cast<std::uint32_t>(Offset)) & U(0xffu);
  }
};

/// 8 bits in equal steps: 255 values from -1 to 1, or 256 from 0 to 1. 1 byte and a scale of
/// 4 bytes per block. A second moment spans more decades than this resolves: use it as a control.
struct linear8 {
  static constexpr char const* name = "linear8";
  static constexpr int block = default_block;
  template <range R>
  using codec = std::conditional_t<R == range::any, linear_codec<127, 127>, linear_codec<255, 0>>;
};

}  // namespace memfit
