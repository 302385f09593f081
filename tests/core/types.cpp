// fp16, bf16 and fp32 against their definitions: every pattern, every rounding boundary.
// The reference decodes with ldexp and rounds by comparing distances in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "memfit/core/types.hpp"

namespace {

/// A 16-bit IEEE-like layout: its exponent and mantissa widths.
template <class T>
struct layout;
template <>
struct layout<memfit::fp16> {
  static constexpr int exponent = 5, mantissa = 10;
};
template <>
struct layout<memfit::bf16> {
  static constexpr int exponent = 8, mantissa = 7;
};

template <class T>
struct definition {
  static constexpr int mantissa = layout<T>::mantissa;
  static constexpr int bias = (1 << (layout<T>::exponent - 1)) - 1;
  static constexpr int top = (1 << layout<T>::exponent) - 1;
  static constexpr std::uint32_t infinity = std::uint32_t(top) << mantissa;

  /// The value of a magnitude pattern below infinity; the infinity pattern gives the value that the
  /// next exponent would have, so that rounding up to it follows the same rule as everywhere.
  static double magnitude(std::uint32_t pattern) {
    int const e = static_cast<int>(pattern >> mantissa);
    double const m = pattern & ((1u << mantissa) - 1);
    double const fraction = std::ldexp(m, -mantissa);
    return e == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, e - bias);
  }

  /// Nearest pattern, ties to the even one, by bisection over the ascending magnitudes.
  static std::uint32_t nearest(float x) {
    std::uint32_t const sign = std::signbit(x) ? 0x8000u : 0u;
    double const a = std::fabs(double{x});
    if (a >= magnitude(infinity)) return sign | infinity;
    std::uint32_t low = 0, high = infinity;
    while (high - low > 1) {
      auto const middle = (low + high) / 2;
      (magnitude(middle) <= a ? low : high) = middle;
    }
    double const below = a - magnitude(low), above = magnitude(high) - a;
    bool const up = above < below || (above == below && low % 2 == 1);
    return sign | (up ? high : low);
  }
};

template <class T>
T from_pattern(std::uint32_t pattern) {
  T value;
  value.bits = static_cast<std::uint16_t>(pattern);
  return value;
}

template <class T>
void rounds_like_its_definition(float x) {
  ASSERT_EQ(T(x).bits, definition<T>::nearest(x)) << std::hexfloat << x;
}

/// x, its mirror image and the floats up to `reach` away.
template <class T>
void rounds_around(float x, int reach) {
  float below = x, above = x;
  rounds_like_its_definition<T>(x);
  rounds_like_its_definition<T>(-x);
  for (int i = 0; i < reach; ++i) {
    below = std::nextafter(below, -INFINITY);
    above = std::nextafter(above, INFINITY);
    for (float y : {below, above}) {
      if (std::isinf(y)) continue;
      rounds_like_its_definition<T>(y);
      rounds_like_its_definition<T>(-y);
    }
  }
}

template <class T>
class sixteen_bits : public testing::Test {};
using both = testing::Types<memfit::fp16, memfit::bf16>;
TYPED_TEST_SUITE(sixteen_bits, both);

TYPED_TEST(sixteen_bits, are_plain) {
  static_assert(sizeof(TypeParam) == 2 && std::is_trivially_copyable_v<TypeParam>);
  EXPECT_EQ(TypeParam{}.bits, 0);
}

TYPED_TEST(sixteen_bits, every_pattern_converts_exactly_and_back) {
  using def = definition<TypeParam>;
  for (std::uint32_t pattern = 0; pattern < 0x10000u; ++pattern) {
    auto const value = from_pattern<TypeParam>(pattern);
    float const wide = static_cast<float>(value);
    auto const magnitude = pattern & 0x7fffu;
    ASSERT_EQ(std::signbit(wide), (pattern & 0x8000u) != 0) << pattern;
    if (magnitude > def::infinity) {
      ASSERT_TRUE(std::isnan(wide)) << pattern;
      ASSERT_GT(TypeParam(wide).bits & 0x7fffu, def::infinity) << pattern;
      continue;
    }
    if (magnitude == def::infinity) {
      ASSERT_TRUE(std::isinf(wide)) << pattern;
    } else {
      ASSERT_EQ(std::fabs(double{wide}), def::magnitude(magnitude)) << pattern;
    }
    ASSERT_EQ(TypeParam(wide).bits, pattern);
  }
}

TYPED_TEST(sixteen_bits, every_midpoint_and_its_neighbours_round_to_nearest_even) {
  using def = definition<TypeParam>;
  for (std::uint32_t pattern = 0; pattern < def::infinity; ++pattern) {
    double const middle = (def::magnitude(pattern) + def::magnitude(pattern + 1)) / 2;
    rounds_around<TypeParam>(static_cast<float>(middle), 3);
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(sixteen_bits, random_floats_round_to_nearest_even) {
  std::mt19937 random(7);
  for (int i = 0; i < 2'000'000; ++i) {
    float const x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(x)) continue;
    rounds_like_its_definition<TypeParam>(x);
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(sixteen_bits, the_ends_of_the_range) {
  for (float x : {0.0f, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
                  std::numeric_limits<float>::max(), INFINITY}) {
    rounds_like_its_definition<TypeParam>(x);
    rounds_like_its_definition<TypeParam>(-x);
  }
}

TYPED_TEST(sixteen_bits, a_nan_stays_a_nan_of_its_sign) {
  for (std::uint32_t payload : {1u, 0x1fffu, 0x2000u, 0x400000u, 0x400001u, 0x7fffffu}) {
    for (std::uint32_t sign : {0u, 0x80000000u}) {
      TypeParam const narrow(std::bit_cast<float>(0x7f800000u | payload | sign));
      EXPECT_GT(narrow.bits & 0x7fffu, definition<TypeParam>::infinity) << std::hex << payload;
      EXPECT_EQ(narrow.bits >> 15, sign >> 31) << std::hex << payload;
    }
  }
}

TEST(fp16, overflows_to_infinity_from_65520_on) {
  EXPECT_EQ(memfit::fp16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(memfit::fp16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(memfit::fp16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(memfit::fp16(-65520.0f).bits, 0xfc00);
}

TEST(fp16, knows_its_landmarks) {
  EXPECT_EQ(memfit::fp16(1.0f).bits, 0x3c00);
  EXPECT_EQ(memfit::fp16(-2.0f).bits, 0xc000);
  EXPECT_EQ(memfit::fp16(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(memfit::fp16(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(memfit::fp16(0x1.8p-24f).bits, 0x0002);
}

TEST(bf16, overflows_to_infinity_half_a_unit_above_its_largest) {
  EXPECT_EQ(memfit::bf16(0x1.fep127f).bits, 0x7f7f);
  EXPECT_EQ(memfit::bf16(0x1.fefffep127f).bits, 0x7f7f);
  EXPECT_EQ(memfit::bf16(0x1.ffp127f).bits, 0x7f80);
}

TEST(bf16, knows_its_landmarks) {
  EXPECT_EQ(memfit::bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(memfit::bf16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(memfit::bf16(1.0f + 0x1.8p-7f).bits, 0x3f82);
}

TEST(fp32, holds_a_float) {
  static_assert(sizeof(memfit::fp32) == 4 && std::is_trivially_copyable_v<memfit::fp32>);
  EXPECT_EQ(static_cast<float>(memfit::fp32(0.1f)), 0.1f);
  EXPECT_EQ(memfit::fp32{}.value, 0.0f);
}

}  // namespace
