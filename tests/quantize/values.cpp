// quantize and dequantize of whole tensors: nearest entries, exact scales, every kind of input.
// Each executor gives the same bits and writes nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/quantize.hpp"
#include "support/guarded.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"
#include "support/table_of.hpp"

namespace {

using memfit::range;

template <class Format, range Range>
struct coded {
  using format = Format;
  static constexpr range kept = Range;
  static constexpr int block = reference::format_of<Format>::block;
  static constexpr bool packed =
      std::is_same_v<typename reference::format_of<Format>::base, memfit::packed4>;
  using scale = std::conditional_t<reference::format_of<Format>::short_scales, memfit::bf16, float>;
};

/// Codes, scales and decoded values of one call of quantize and dequantize.
template <class Coded>
struct coded_tensor {
  test::guarded<std::uint8_t> codes;
  test::guarded<typename Coded::scale> scales;
  test::guarded<float> decoded;

  /// The code of element i; two to a byte, the first in the low half.
  std::uint32_t code(std::int64_t i) {
    if (!Coded::packed) return codes[i];
    return i % 2 == 0 ? codes[i / 2] & 0xfu : codes[i / 2] >> 4;
  }
};

template <class Coded, class Element>
coded_tensor<Coded> round_trip(memfit::host const& exec, test::guarded<Element>& in) {
  auto const blocks = memfit::block_count<typename Coded::format>(in.count());
  auto const bytes = Coded::packed ? (in.count() + 1) / 2 : in.count();
  coded_tensor<Coded> out{test::guarded<std::uint8_t>(bytes),
                          test::guarded<typename Coded::scale>(blocks),
                          test::guarded<float>(in.count())};
  memfit::quantize<typename Coded::format, Coded::kept>(exec, in.ref("in"), out.codes.ref("codes"),
                                                        out.scales.ref("scales"));
  memfit::dequantize<typename Coded::format, Coded::kept>(
      exec, out.codes.ref("codes"), out.scales.ref("scales"), out.decoded.ref("out"));
  EXPECT_TRUE(in.intact() && out.codes.intact() && out.scales.intact() && out.decoded.intact());
  return out;
}

template <class Coded>
class quantize : public testing::Test {
 protected:
  reference::table const table = reference::table_of<typename Coded::format>(Coded::kept);
  float decode[256] = {};

  void SetUp() override {
    for (auto const& [code, value] : table) decode[code] = value;
  }

  template <class Element>
  void is_right(test::guarded<Element>& in, coded_tensor<Coded>& got) {
    auto const n = in.count();
    ASSERT_EQ(got.scales.count(), (n + Coded::block - 1) / Coded::block);
    for (std::int64_t b = 0; b * Coded::block < n; ++b) {
      auto const end = std::min(n, (b + 1) * Coded::block);
      float largest = 0;
      for (auto i = b * Coded::block; i < end; ++i)
        largest = std::max(largest, std::fabs(static_cast<float>(in[i])));
      float const scale = reference::scale_of<typename Coded::format>(largest);
      ASSERT_EQ(static_cast<float>(got.scales[b]), scale) << "block " << b;
      for (auto i = b * Coded::block; i < end; ++i) {
        float const x = static_cast<float>(in[i]), entry = decode[got.code(i)];
        ASSERT_EQ(got.decoded[i], entry * scale) << "element " << i;
        if (largest == 0) {
          ASSERT_EQ(entry, 0.0f) << "element " << i;
          continue;
        }
        double const share = double{x} / double{scale};
        double const best =
            reference::nearest_distance(table, share, Coded::kept == range::non_negative);
        ASSERT_LE(std::fabs(share - double{entry}), best + 0x1p-22 * std::fabs(share))
            << "element " << i << ": " << x << " under scale " << scale << " became " << entry;
      }
    }
    bool const half_free = Coded::packed && n % 2 != 0;
    if (half_free) {
      ASSERT_EQ(decode[got.code(n)], 0.0f) << "behind an odd number of elements";
    }
  }

  template <class Element>
  void is_right_and_the_same_everywhere(std::vector<float> values, std::string const& what) {
    SCOPED_TRACE(what);
    if (Coded::kept == range::non_negative)
      for (auto& x : values) x = std::fabs(x);
    test::guarded<Element> in(values, 1);
    auto const hosts = test::all_hosts();
    auto first = round_trip<Coded>(hosts.front().exec, in);
    is_right(in, first);
    for (auto const& host : hosts) {
      auto const other = round_trip<Coded>(host.exec, in);
      ASSERT_EQ(other.codes.snapshot(), first.codes.snapshot()) << host.name;
      ASSERT_EQ(other.scales.snapshot(), first.scales.snapshot()) << host.name;
      ASSERT_EQ(other.decoded.snapshot(), first.decoded.snapshot()) << host.name;
    }
  }
};

using memfit::blocked, memfit::dynamic8, memfit::float8, memfit::linear8;
using coded_formats =
    testing::Types<coded<dynamic8, range::non_negative>, coded<linear8, range::non_negative>,
                   coded<float8, range::any>, coded<float8, range::non_negative>,
                   coded<blocked<dynamic8, 32>, range::any>,
                   coded<blocked<float8, 64>, range::non_negative>,
                   coded<blocked<linear8, 2048>, range::any>, coded<memfit::companded8, range::any>,
                   coded<memfit::root8, range::non_negative>, coded<memfit::packed4, range::any>,
                   coded<memfit::packed4, range::non_negative>>;
TYPED_TEST_SUITE(quantize, coded_formats);

TYPED_TEST(quantize, every_kind_of_input) {
  for (auto kind : test::all_kinds) {
    auto const values = test::make_input(kind, 1000, 3);
    this->template is_right_and_the_same_everywhere<float>(values, test::name_of(kind));
  }
}

TYPED_TEST(quantize, sixteen_bit_and_struct_inputs) {
  for (auto kind : {test::kind::normal, test::kind::sparse, test::kind::tiny}) {
    auto const values = test::make_input(kind, 777, 4);
    this->template is_right_and_the_same_everywhere<memfit::fp32>(values, "fp32");
    this->template is_right_and_the_same_everywhere<memfit::bf16>(values, "bf16");
    this->template is_right_and_the_same_everywhere<memfit::fp16>(values, "fp16");
  }
}

TYPED_TEST(quantize, a_tensor_long_enough_for_all_threads) {
  auto const values = test::make_input(test::kind::lognormal, 300'007, 5);
  this->template is_right_and_the_same_everywhere<float>(values, "long");
}

TYPED_TEST(quantize, an_empty_tensor) {
  this->template is_right_and_the_same_everywhere<float>({}, "empty");
}

TYPED_TEST(quantize, subnormal_blocks_come_back) {
  for (float scale : {1e-40f, 3e-44f, 0x1p-149f, 0x1p-126f, 0x1.fffffep-127f}) {
    std::vector<float> values(static_cast<std::size_t>(TypeParam::block), scale / 2);
    values[1] = scale;
    values[2] = 0;
    this->template is_right_and_the_same_everywhere<float>(values, std::to_string(scale));
  }
}

TYPED_TEST(quantize, a_zero_block_between_others_stays_zero) {
  std::vector<float> values(static_cast<std::size_t>(3 * TypeParam::block), 2.0f);
  std::fill_n(values.begin() + TypeParam::block, TypeParam::block, 0.0f);
  this->template is_right_and_the_same_everywhere<float>(values, "zero block");
}

TYPED_TEST(quantize, decodes_into_sixteen_bits_to_nearest) {
  auto const exec = memfit::host{1};
  auto values = test::make_input(test::kind::normal, 600, 6);
  for (auto& x : values) x = std::fabs(x);
  test::guarded<float> in(values);
  auto coded = round_trip<TypeParam>(exec, in);
  test::guarded<memfit::bf16> narrow(in.count());
  test::guarded<memfit::fp16> half(in.count());
  memfit::dequantize<typename TypeParam::format, TypeParam::kept>(exec, coded.codes.ref(),
                                                                  coded.scales.ref(), narrow.ref());
  memfit::dequantize<typename TypeParam::format, TypeParam::kept>(exec, coded.codes.ref(),
                                                                  coded.scales.ref(), half.ref());
  for (std::int64_t i = 0; i < in.count(); ++i) {
    ASSERT_EQ(narrow[i].bits, memfit::bf16(coded.decoded[i]).bits) << i;
    ASSERT_EQ(half[i].bits, memfit::fp16(coded.decoded[i]).bits) << i;
  }
}

TYPED_TEST(quantize, what_is_not_finite_counts_as_zero_or_as_the_largest) {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t n : {7, 600}) {
    std::vector<float> values(static_cast<std::size_t>(n), 0.25f), stand_in = values;
    values[1] = stand_in[1] = 0.5f;
    values[2] = nan;
    stand_in[2] = 0;
    values[4] = HUGE_VALF;
    stand_in[4] = 0.5f;
    values[6] = -HUGE_VALF;
    stand_in[6] = TypeParam::kept == range::any ? -0.5f : 0.0f;
    test::guarded<float> bad(values), good(stand_in);
    for (auto const& host : test::all_hosts()) {
      auto const got = round_trip<TypeParam>(host.exec, bad);
      auto const expected = round_trip<TypeParam>(host.exec, good);
      EXPECT_EQ(got.codes.snapshot(), expected.codes.snapshot()) << host.name;
      EXPECT_EQ(got.scales.snapshot(), expected.scales.snapshot()) << host.name;
    }
  }
}

TYPED_TEST(quantize, a_non_negative_code_takes_what_is_below_zero_as_zero) {
  if (TypeParam::kept == range::any) GTEST_SKIP() << "a signed code keeps it";
  auto const values = test::make_input(test::kind::normal, 600, 7);
  auto positive = values;
  for (auto& x : positive) x = std::fmax(x, 0.0f);
  test::guarded<float> mixed(values), clipped(positive);
  for (auto const& host : test::all_hosts()) {
    auto const got = round_trip<TypeParam>(host.exec, mixed);
    auto const expected = round_trip<TypeParam>(host.exec, clipped);
    EXPECT_EQ(got.codes.snapshot(), expected.codes.snapshot()) << host.name;
    EXPECT_EQ(got.scales.snapshot(), expected.scales.snapshot()) << host.name;
  }
}

template <class Format>
class unscaled : public testing::Test {};
using unscaled_formats = testing::Types<memfit::bf16, memfit::fp16>;
TYPED_TEST_SUITE(unscaled, unscaled_formats);

TYPED_TEST(unscaled, formats_convert_element_by_element_and_have_no_scales) {
  for (auto kind : {test::kind::normal, test::kind::mixed}) {
    test::guarded<float> in(test::make_input(kind, 1001, 8), 1);
    for (auto const& host : test::all_hosts()) {
      test::guarded<std::uint16_t> codes(in.count(), 1);
      test::guarded<float> out(in.count(), 1);
      memfit::tensor_ref<float> const no_scales;
      memfit::quantize<TypeParam>(host.exec, in.ref(), codes.ref(), no_scales);
      memfit::dequantize<TypeParam>(host.exec, codes.ref(), no_scales, out.ref());
      for (std::int64_t i = 0; i < in.count(); ++i) {
        ASSERT_EQ(codes[i], TypeParam(in[i]).bits) << host.name << " element " << i;
        ASSERT_EQ(out[i], static_cast<float>(TypeParam(in[i]))) << host.name << " element " << i;
      }
      ASSERT_TRUE(in.intact() && codes.intact() && out.intact());
    }
  }
}

TEST(block_count, rounds_up_in_64_bits) {
  EXPECT_EQ(memfit::block_count(0, 256), 0);
  EXPECT_EQ(memfit::block_count(1, 256), 1);
  EXPECT_EQ(memfit::block_count(256, 256), 1);
  EXPECT_EQ(memfit::block_count(257, 256), 2);
  EXPECT_EQ(memfit::block_count((1ll << 31) - 1, 256), 8388608);
  EXPECT_EQ(memfit::block_count(1ll << 31, 256), 8388608);
  EXPECT_EQ(memfit::block_count((1ll << 31) + 1, 256), 8388609);
  EXPECT_EQ(memfit::block_count((1ll << 32) + 5, 256), 16777217);
  EXPECT_EQ(memfit::block_count((1ll << 30) + 1, 64), 16777217);
}

}  // namespace
