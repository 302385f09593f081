// Parameter columns in two parts by their definition: a float with more bits than what the model
// reads, computed in double. Used by the sweeps over chosen and over all patterns.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "memfit/codec/column.hpp"

namespace test {

inline double two_to(int e) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
}

/// The value x > 0 has this exponent: 2^e <= x < 2^(e + 1).
inline int exponent_of(double x) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52) - 1023;
}

template <class Column>
struct two_parts {
  using scalar = typename Column::element;
  static constexpr bool is_bf16 = std::is_same_v<scalar, memfit::bf16>;
  static constexpr int mantissa = is_bf16 ? 7 : 10, least = is_bf16 ? -126 : -14;
  static constexpr int more = 8 * static_cast<int>(sizeof(typename Column::kept));
  static constexpr std::uint32_t infinity = is_bf16 ? 0x7f80u : 0x7c00u;
  static constexpr std::uint32_t rests = 1u << more;
  /// Half a spacing above the largest finite scalar.
  static double beyond() {
    return two_to(is_bf16 ? 128 : 16) - two_to((is_bf16 ? 127 : 15) - mantissa - 1);
  }

  static double spacing(double magnitude, int bits) {
    return two_to(std::max(exponent_of(magnitude), least) - bits);
  }

  /// What the column makes of x, which is no NaN, and what the model reads of it.
  static void keeps(std::uint32_t pattern) {
    auto const x = std::bit_cast<float>(pattern);
    auto const code = Column::encode(x, 0u);
    float const got = Column::decode(code.visible, code.kept),
                seen = Column::decode_visible(code.visible);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(got) && std::isnan(seen)) << std::hex << pattern;
      return;
    }
    double const a = std::fabs(double{x});
    double const unit = spacing(a, mantissa + more);
    constexpr double magic = 0x1.8p52;  // what is added to it is rounded to a whole number
    double const value = std::isinf(x) ? a : ((a / unit + magic) - magic) * unit;
    ASSERT_EQ(value >= beyond(), (pattern & 0x7fffffffu) >= Column::overflow) << std::hexfloat << x;
    ASSERT_EQ(std::signbit(seen), std::signbit(x)) << std::hexfloat << x;
    if (value >= beyond()) {
      ASSERT_TRUE(std::isinf(seen)) << std::hexfloat << x;
      return;
    }
    double const coarse = spacing(value, mantissa);
    ASSERT_EQ(std::fabs(double{seen}),
              static_cast<double>(static_cast<std::int64_t>(value / coarse + 0.5)) * coarse)
        << std::hexfloat << x;
    ASSERT_EQ(double{got}, std::signbit(x) ? -value : value) << std::hexfloat << x;
    ASSERT_EQ(std::signbit(got), std::signbit(x)) << std::hexfloat << x;
  }

  /// What a pair of parts, as nobody may have written them, says, and that it is kept as it is.
  static void reads(std::uint32_t visible, std::uint32_t rest) {
    std::uint32_t const top = visible & 0x7fffu;
    float const got = Column::decode(visible, rest);
    if (top > infinity) {
      ASSERT_TRUE(std::isnan(got)) << std::hex << visible << ' ' << rest;
      return;
    }
    if (top == infinity) {
      ASSERT_TRUE(rest != 0 || std::isinf(got)) << std::hex << visible;
      return;
    }
    bool const below = top != 0 && rest >= rests / 2;
    auto const m = (std::int64_t{top} << more) + rest - (below ? std::int64_t{rests} : 0);
    auto const e = static_cast<int>(m >> (mantissa + more));
    auto const digits = m & ((std::int64_t{1} << (mantissa + more)) - 1);
    double const unit = two_to((e == 0 ? 1 : e) - 1 + least - mantissa - more);
    double const value =
        static_cast<double>(digits + (e == 0 ? 0 : std::int64_t{1} << (mantissa + more))) * unit;
    if (double{static_cast<float>(value)} != value) {  // more digits than a float has
      ASSERT_LT(std::fabs(std::fabs(double{got}) - value), value * 0x1p-23);
      return;
    }
    ASSERT_EQ(std::fabs(double{got}), value) << std::hex << visible << ' ' << rest;
    ASSERT_EQ(std::signbit(got), visible >= 0x8000u) << std::hex << visible << ' ' << rest;
    if (top == 0 && rest >= rests / 2) return;
    auto const again = Column::encode(got, 0u);
    ASSERT_EQ(again.visible, visible) << std::hexfloat << got;
    ASSERT_EQ(again.kept, rest) << std::hexfloat << got;
  }
};

}  // namespace test
