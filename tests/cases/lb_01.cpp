// LB-01: the unsigned 8-bit dynamic codebook of another library had far more than 256 entries.
// Here: what the codes stand for, counted and measured, for every 8-bit format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/small_float.hpp"

namespace {

using memfit::range;

/// The report's bounds are for exact entries; entries and inputs in fp32 are off by half a unit
/// each.
constexpr double fp32_entries = 0x1p-24;

/// The values that encoding can ever reach, found by asking the codec itself.
template <class Format, range Range>
std::vector<float> reachable() {
  using codec = memfit::codec_for<Format, Range>;
  std::set<float> values;
  for (std::uint32_t code = 0; code < 256; ++code) {
    float const value = codec::decode(code);
    if (std::fabs(value) <= 1 && codec::decode(codec::encode(value)) == value) values.insert(value);
  }
  return {values.begin(), values.end()};
}

template <class Format, range Range>
void is_a_sound_code(std::string const& name) {
  SCOPED_TRACE(name);
  using codec = memfit::codec_for<Format, Range>;
  auto const values = reachable<Format, Range>();
  EXPECT_LE(values.size(), 256u);
  EXPECT_TRUE(std::binary_search(values.begin(), values.end(), 0.0f));
  EXPECT_EQ(values.back(), 1.0f);
  if (Range == range::non_negative) {
    EXPECT_EQ(values.front(), 0.0f);
  }
  double widest = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    widest = std::max(widest, double{values[i]} - double{values[i - 1]});
  double worst = 0;
  for (int i = Range == range::any ? -100'000 : 0; i <= 100'000; ++i) {
    auto const x = static_cast<float>(i * 1e-5);
    worst = std::max(worst, std::fabs(double{x} - double{codec::decode(codec::encode(x))}));
  }
  // The signed dynamic map ends at -0.99296875: beyond it the error is the distance to that end.
  double const end = Range == range::any ? 1.0 + double{values.front()} : 0.0;
  EXPECT_LE(worst, std::max(widest / 2, end) + fp32_entries);
}

TEST(LB_01, every_format_has_a_sound_code) {
  is_a_sound_code<memfit::dynamic8, range::any>("dynamic8");
  is_a_sound_code<memfit::dynamic8, range::non_negative>("dynamic8, non-negative");
  is_a_sound_code<memfit::linear8, range::any>("linear8");
  is_a_sound_code<memfit::linear8, range::non_negative>("linear8, non-negative");
  is_a_sound_code<memfit::float8, range::any>("float8");
  is_a_sound_code<memfit::float8, range::non_negative>("float8, non-negative");
}

template <range Range>
void is_the_published_map(float smallest, float below_one, double largest_error) {
  using codec = memfit::codec_for<memfit::dynamic8, Range>;
  auto const values = reachable<memfit::dynamic8, Range>();
  ASSERT_EQ(values.size(), 256u);
  for (std::uint32_t code = 0; code < 256; ++code) {
    EXPECT_EQ(codec::decode(code), values[code]) << "codes ascend with their values";
    EXPECT_EQ(codec::encode(codec::decode(code)), code);
  }
  EXPECT_NEAR(*std::upper_bound(values.begin(), values.end(), 0.0f), smallest, smallest * 1e-6);
  EXPECT_EQ(values[254], below_one);
  double worst = 0;
  for (int i = Range == range::any ? -100'000 : 0; i <= 100'000; ++i) {
    auto const x = static_cast<float>(i * 1e-5);
    worst = std::max(worst, std::fabs(double{x} - double{codec::decode(codec::encode(x))}));
  }
  EXPECT_LE(worst, largest_error + fp32_entries);
}

TEST(LB_01, the_dynamic_map_has_256_entries_and_the_published_ends) {
  is_the_published_map<range::non_negative>(3.25e-7f, 0.996484375f, 0.003515626);
  is_the_published_map<range::any>(5.5e-7f, 0.99296875f, 0.007031251);
}

}  // namespace
