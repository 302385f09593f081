// Moments rounded at random: over all noise the expectation is the value, the two codes around it
// are the only ones, and a second moment never becomes zero.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "memfit/codec/column.hpp"
#include "support/table_of.hpp"

namespace {

using memfit::range;

template <class Format, range Range>
struct random_code {
  using format = Format;
  using codec = memfit::codec_for<Format, Range>;
  static constexpr range kept = Range;

  static float rounded(float x, std::uint32_t noise) {
    return codec::decode(memfit::encode_at_random<codec, Range>(x, x > 0, noise));
  }
};

template <class Code>
class at_random : public testing::Test {
 protected:
  /// 2^12 draws, one from each part of all noise.
  static constexpr int draws = 4096;
  static std::uint32_t draw(int i) { return static_cast<std::uint32_t>(i) << 20 | 0x80000u; }

  void has_the_expectation(float x, float low, float high) {
    int at_high = 0;
    for (int i = 0; i < draws; ++i) {
      float const got = Code::rounded(x, draw(i));
      ASSERT_TRUE(got == low || got == high) << std::hexfloat << x << " became " << got;
      at_high += got == high;
    }
    double const share = (double{x} - double{low}) / (double{high} - double{low});
    ASSERT_NEAR(at_high, share * draws, 1.01) << std::hexfloat << x;
  }
};

using random_codes = testing::Types<
    random_code<memfit::packed4, range::any>, random_code<memfit::packed4, range::non_negative>,
    random_code<memfit::float8, range::any>, random_code<memfit::float8, range::non_negative>,
    random_code<memfit::dynamic8, range::any>, random_code<memfit::companded8, range::any>>;
TYPED_TEST_SUITE(at_random, random_codes);

TYPED_TEST(at_random, the_expectation_is_the_value_and_it_keeps_to_its_neighbours) {
  auto const table = reference::table_of<typename TypeParam::format>(TypeParam::kept);
  for (std::size_t i = 1; i < table.size(); ++i) {
    float const low = table[i - 1].value, high = table[i].value;
    if (TypeParam::kept == range::non_negative && low == 0) continue;
    for (double share : {0.0, 0.03, 0.25, 0.5, 0.71}) {
      auto const x = static_cast<float>(low + share * (double{high} - double{low}));
      this->has_the_expectation(x, low, high);
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(at_random, what_a_code_holds_stays_whatever_the_noise) {
  auto const table = reference::table_of<typename TypeParam::format>(TypeParam::kept);
  for (auto const& entry : table)
    for (std::uint32_t noise : {0u, 0xffu, 0x80000000u, 0xffffffffu})
      ASSERT_EQ(TypeParam::rounded(entry.value, noise), entry.value) << noise;
}

TYPED_TEST(at_random, above_zero_a_second_moment_never_becomes_zero) {
  for (float x = 1.0f; x > 0; x /= 3)
    for (std::uint32_t noise : {0u, 0x80000000u, 0xffffffffu}) {
      if (TypeParam::kept == range::non_negative) {
        ASSERT_GT(TypeParam::rounded(x, noise), 0) << x;
      }
      ASSERT_LE(TypeParam::rounded(x, noise), 1) << x;
    }
}

/// Far out, where differences times 2^24 are no floats, and at both ends.
TEST(at_random, of_bf16_is_fair_for_magnitudes_of_every_size) {
  using codec = memfit::codec_for<memfit::bf16, range::any>;
  for (float least : {0x1p-133f, 0x1p-120f, 1.0f, 0x1p100f, 0x1p126f}) {
    float const next = codec::decode(codec::encode(least) + 1), x = least + (next - least) / 4;
    int up = 0;
    for (std::uint32_t i = 0; i < 4096; ++i)
      up += codec::decode(memfit::encode_at_random<codec, range::any>(x, true, i << 20)) == next;
    EXPECT_EQ(up, 1024) << least;
  }
  for (std::uint32_t noise : {0u, 0xffffffffu}) {
    float const most = 0x1.fep127f, beyond = 0x1.fe8p127f;
    EXPECT_EQ(codec::decode(memfit::encode_at_random<codec, range::any>(beyond, true, noise)),
              most);
  }
}

}  // namespace
