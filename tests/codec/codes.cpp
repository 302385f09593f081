// The codes of 8 and 4 bits, exhaustively: every code, every boundary between neighbours, a dense
// sweep of inputs. The tables come from the published map and from definitions; nearest is decided
// in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "support/pace.hpp"
#include "support/table_of.hpp"

namespace {

using memfit::range;

template <class Format, range Range>
struct code_of {
  using codec = memfit::codec_for<Format, Range>;
  static constexpr bool is_signed = Range == range::any;
  static constexpr bool is_linear = std::is_same_v<Format, memfit::linear8>;

  static float decode(std::uint32_t code) { return codec::decode(code); }
  static std::uint32_t encode(float x) { return codec::encode(x); }
  static reference::table table() { return reference::table_of<Format>(Range); }
};

template <class Code>
class few_bits : public testing::Test {
 protected:
  reference::table const table = Code::table();

  /// The entry that encode chose is as near as the nearer of two neighbours; at a tie either will
  /// do. linear8 decides by the real c / 255 instead of its fp32 value: one unit of x may decide
  /// otherwise.
  void chooses_between(float x, float low, float high) {
    float const chosen = Code::decode(Code::encode(x));
    double const below = std::fabs(double{x} - double{low});
    double const above = std::fabs(double{high} - double{x});
    ASSERT_TRUE(chosen == low || chosen == high) << std::hexfloat << x << " became " << chosen;
    double const slack = Code::is_linear ? 2 * std::fabs(double{x}) * 0x1p-23 : 0;
    ASSERT_LE(std::fabs(double{x} - double{chosen}), std::fmin(below, above) + slack)
        << std::hexfloat << x << " became " << chosen << " between " << low << " and " << high;
  }
};

using codes = testing::Types<
    code_of<memfit::dynamic8, range::any>, code_of<memfit::dynamic8, range::non_negative>,
    code_of<memfit::linear8, range::any>, code_of<memfit::linear8, range::non_negative>,
    code_of<memfit::float8, range::any>, code_of<memfit::float8, range::non_negative>,
    code_of<memfit::companded8, range::any>, code_of<memfit::companded8, range::non_negative>,
    code_of<memfit::root8, range::any>, code_of<memfit::root8, range::non_negative>,
    code_of<memfit::packed4, range::any>, code_of<memfit::packed4, range::non_negative>>;
TYPED_TEST_SUITE(few_bits, codes);

TYPED_TEST(few_bits, every_code_decodes_to_the_table_to_the_last_bit) {
  for (auto const& [code, value] : this->table)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(TypeParam::decode(code)),
              std::bit_cast<std::uint32_t>(value))
        << "code " << code << " must be " << std::hexfloat << value;
}

TYPED_TEST(few_bits, every_entry_encodes_to_its_own_code) {
  for (auto const& [code, value] : this->table) EXPECT_EQ(TypeParam::encode(value), code) << value;
}

TYPED_TEST(few_bits, zeros_of_either_sign_stay_zero) {
  EXPECT_EQ(TypeParam::decode(TypeParam::encode(0.0f)), 0.0f);
  EXPECT_EQ(TypeParam::decode(TypeParam::encode(-0.0f)), 0.0f);
}

TYPED_TEST(few_bits, the_nearest_entry_at_every_boundary) {
  for (std::size_t i = 1; i < this->table.size(); ++i) {
    float const low = this->table[i - 1].value, high = this->table[i].value;
    auto const middle = static_cast<float>((double{low} + double{high}) / 2);
    this->chooses_between(middle, low, high);
    for (int ulps = 1; ulps <= 16384; ulps = ulps < 16 ? ulps + 1 : 2 * ulps) {
      for (int signed_ulps : {ulps, -ulps}) {
        float const x = std::bit_cast<float>(std::bit_cast<std::int32_t>(middle) + signed_ulps);
        if (x > low && x < high) this->chooses_between(x, low, high);
      }
    }
    this->chooses_between(std::nextafter(low, high), low, high);
    this->chooses_between(std::nextafter(high, low), low, high);
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(few_bits, the_nearest_entry_over_all_magnitudes) {
  constexpr std::uint32_t one = 0x3f800000u, stride = test::slow_build ? 4001 : 241;
  for (bool negative : {false, true}) {
    if (negative && !TypeParam::is_signed) continue;
    std::size_t at = 0;
    while (this->table[at].value < 0) ++at;
    // Walks outward from zero: `at` is the last entry whose magnitude is not above x's.
    for (std::uint32_t bits = 0; bits <= one; bits += stride) {
      float const x = std::bit_cast<float>(negative ? bits | 0x80000000u : bits);
      auto const outward = [&] { return negative ? at - 1 : at + 1; };
      bool const last = negative ? at == 0 : at + 1 == this->table.size();
      if (!last && std::fabs(this->table[outward()].value) <= std::fabs(x)) {
        at = outward();
      }
      bool const beyond = negative ? at == 0 : at + 1 == this->table.size();
      if (beyond) {
        ASSERT_EQ(TypeParam::decode(TypeParam::encode(x)), this->table[at].value);
        continue;
      }
      float const near = this->table[at].value, far = this->table[outward()].value;
      this->chooses_between(x, std::fmin(near, far), std::fmax(near, far));
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(few_bits, encoding_keeps_order) {
  float before = TypeParam::decode(TypeParam::encode(TypeParam::is_signed ? -1.0f : 0.0f));
  for (int i = TypeParam::is_signed ? -200000 : 0; i <= 200000; ++i) {
    float const now = TypeParam::decode(TypeParam::encode(static_cast<float>(i) / 200000.0f));
    ASSERT_LE(before, now) << i;
    before = now;
  }
}

TYPED_TEST(few_bits, says_what_it_is) {
  using codec = typename TypeParam::codec;
  static_assert(memfit::codec<codec> && codec::scaled);
  static_assert(std::is_same_v<typename codec::code, std::uint8_t>);
  EXPECT_EQ(TypeParam::decode(codec::zero), 0.0f);
}

TEST(float8, is_e4m3_and_ue5m3_relative_to_one) {
  using m = memfit::codec_for<memfit::float8, range::any>;
  using v = memfit::codec_for<memfit::float8, range::non_negative>;
  EXPECT_EQ(m::encode(1.0f), 0x78u);
  EXPECT_EQ(m::encode(-1.0f), 0xf8u);
  EXPECT_EQ(m::decode(0x01u), 0x1p-17f);
  EXPECT_EQ(m::decode(0x08u), 0x1p-14f);
  EXPECT_EQ(v::encode(1.0f), 248u);
  EXPECT_EQ(v::decode(1u), 0x1.2p-31f);
}

TEST(companded8, has_its_zero_and_one_at_127_steps_and_at_255) {
  using m = memfit::codec_for<memfit::companded8, range::any>;
  using v = memfit::codec_for<memfit::companded8, range::non_negative>;
  EXPECT_EQ(m::encode(0.0f), 127u);
  EXPECT_EQ(m::encode(1.0f), 254u);
  EXPECT_EQ(m::encode(-1.0f), 0u);
  EXPECT_EQ(m::decode(128u), 1.0f / 253);
  EXPECT_EQ(v::encode(1.0f), 255u);
  EXPECT_EQ(v::decode(1u), 1.0f / 65025);
}

TEST(root8, has_its_zero_and_one_at_127_steps_and_at_255) {
  using m = memfit::codec_for<memfit::root8, range::any>;
  using v = memfit::codec_for<memfit::root8, range::non_negative>;
  EXPECT_EQ(m::encode(0.0f), 127u);
  EXPECT_EQ(m::encode(1.0f), 254u);
  EXPECT_EQ(m::encode(-1.0f), 0u);
  EXPECT_EQ(m::decode(129u), 4.0f / 16129);
  EXPECT_EQ(v::encode(1.0f), 255u);
  EXPECT_NEAR(v::decode(1u), 2.36505e-10, 1e-15);
}

TEST(packed4, counts_from_minus_seven_to_seven_and_has_levels_down_to_a_hundredth) {
  using m = memfit::codec_for<memfit::packed4, range::any>;
  using v = memfit::codec_for<memfit::packed4, range::non_negative>;
  EXPECT_EQ(m::encode(0.0f), 7u);
  EXPECT_EQ(m::encode(1.0f), 14u);
  EXPECT_EQ(m::encode(-1.0f), 0u);
  EXPECT_EQ(m::decode(8u), 1.0f / 12);
  EXPECT_EQ(v::encode(1.0f), 15u);
  EXPECT_EQ(v::decode(1u), 0.01f);
}

TEST(scales, above_one_by_their_rounding_stay_at_the_last_code) {
  // Of 16 bits, the largest scale there is may be below the block's largest value.
  constexpr float beyond = 1.00390625f;
  EXPECT_EQ((memfit::codec_for<memfit::companded8, range::any>::encode(beyond)), 254u);
  EXPECT_EQ((memfit::codec_for<memfit::companded8, range::non_negative>::encode(beyond)), 255u);
  EXPECT_EQ((memfit::codec_for<memfit::root8, range::any>::encode(beyond)), 254u);
  EXPECT_EQ((memfit::codec_for<memfit::root8, range::non_negative>::encode(beyond)), 255u);
  EXPECT_EQ((memfit::codec_for<memfit::packed4, range::any>::encode(beyond)), 14u);
  EXPECT_EQ((memfit::codec_for<memfit::packed4, range::non_negative>::encode(beyond)), 15u);
}

template <range Range>
void breaks_ties_to_even_codes() {
  using code = code_of<memfit::float8, Range>;
  auto const table = code::table();
  for (std::size_t i = 1; i < table.size(); ++i) {
    if (!code::is_signed && table[i - 1].value == 0) continue;  // half of the least is kept
    auto const middle = (table[i - 1].value + table[i].value) / 2;
    EXPECT_EQ(code::encode(middle) % 2, 0u) << std::hexfloat << middle;
  }
}

TEST(float8, breaks_ties_to_even_codes) {
  breaks_ties_to_even_codes<range::any>();
  breaks_ties_to_even_codes<range::non_negative>();
}

TEST(dynamic8, has_its_zero_and_one_where_the_published_map_has_them) {
  using m = memfit::codec_for<memfit::dynamic8, range::any>;
  using v = memfit::codec_for<memfit::dynamic8, range::non_negative>;
  EXPECT_EQ(m::encode(0.0f), 127u);
  EXPECT_EQ(m::encode(1.0f), 255u);
  EXPECT_EQ(m::encode(-1.0f), 0u);
  EXPECT_EQ(m::decode(0u), -0.99296875f);
  EXPECT_EQ(v::encode(0.0f), 0u);
  EXPECT_EQ(v::encode(1.0f), 255u);
}

}  // namespace
