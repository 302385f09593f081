// Parameter columns in two parts and rounded at random, value by value: every pair of an 8-bit
// column, whole binades, ties, subnormals, infinities and NaN; lanes like single values.
#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "codec/columns.hpp"
#include "memfit/exec/host.hpp"
#include "support/hosts.hpp"
#include "support/pace.hpp"

namespace {

using memfit::bf16, memfit::fp16, memfit::split, memfit::corrected, memfit::stochastic;

template <class Column>
class two_part_column : public testing::Test {
 protected:
  using reference = test::two_parts<Column>;
  static constexpr std::uint32_t stride = test::slow_build ? 97 : 1;
};
using two_part_columns = testing::Types<split<bf16>, split<fp16>, corrected<bf16>, corrected<fp16>>;
TYPED_TEST_SUITE(two_part_column, two_part_columns);

TYPED_TEST(two_part_column, keeps_every_mantissa_of_an_exponent) {
  constexpr bool wide = std::is_same_v<typename TypeParam::element, bf16>;
  // Subnormals, ordinary values and the last ones; those of fp16 begin and end within floats.
  std::uint32_t step = 1;
  for (std::uint32_t e : wide ? std::array{127u, 0u, 254u} : std::array{112u, 105u, 142u}) {
    for (std::uint32_t m = 0; m < 1u << 23; m += step * this->stride)
      ASSERT_NO_FATAL_FAILURE(TestFixture::reference::keeps(e << 23 | m));
    step = 29;
  }
}

TYPED_TEST(two_part_column, keeps_values_of_all_sizes) {
  for (std::uint64_t pattern = 0; pattern < std::uint64_t{1} << 32; pattern += 8191 * this->stride)
    ASSERT_NO_FATAL_FAILURE(TestFixture::reference::keeps(static_cast<std::uint32_t>(pattern)));
}

TYPED_TEST(two_part_column, breaks_ties_as_it_says) {
  for (std::uint32_t upper = 0; upper < 0x10000u; upper += this->stride)
    for (std::uint32_t lower :
         {0x0u,    0x1u,    0x10u,   0x7fu,   0x80u,   0x81u,   0x180u,  0x0fffu,
          0x1000u, 0x1001u, 0x7f7fu, 0x7f80u, 0x7f81u, 0x7fffu, 0x8000u, 0x8001u,
          0x807fu, 0x8080u, 0x8081u, 0xff7fu, 0xff80u, 0xffffu})
      ASSERT_NO_FATAL_FAILURE(TestFixture::reference::keeps(upper << 16 | lower));
}

TYPED_TEST(two_part_column, reads_whatever_lies_in_memory) {
  // 2^24 pairs of 16 and 8 bits; of 16 and 16 bits every 2047th, and all with some visible parts.
  constexpr std::uint32_t rests = TestFixture::reference::rests;
  constexpr std::uint32_t step = (rests > 256 ? 2047 : 1) * TestFixture::stride;
  for (std::uint32_t visible = 0; visible < 0x10000u; ++visible)
    for (std::uint32_t rest = visible % step; rest < rests; rest += step)
      ASSERT_NO_FATAL_FAILURE(TestFixture::reference::reads(visible, rest));
  for (std::uint32_t visible :
       {0u, 1u, 0x7fu, 0x80u, 0x3ffu, 0x400u, 0x3f80u, 0xbf7fu, 0x7bffu, 0x7f7fu, 0x8000u, 0x8001u})
    for (std::uint32_t rest = 0; rest < rests; rest += TestFixture::stride)
      ASSERT_NO_FATAL_FAILURE(TestFixture::reference::reads(visible, rest));
}

TYPED_TEST(two_part_column, starts_from_what_the_model_reads) {
  for (std::uint32_t visible = 0; visible < 0x10000u; ++visible) {
    float const x = TypeParam::decode_visible(visible);
    if (std::isnan(x)) continue;
    auto const code = TypeParam::encode(x, 0u);
    ASSERT_EQ(code.visible, visible);
    ASSERT_EQ(code.kept, 0u);
  }
}

template <class Column>
class random_column : public testing::Test {
 protected:
  static constexpr bool wide = std::is_same_v<typename Column::element, bf16>;

  static float rounded(float x, std::uint32_t noise) {
    auto const code = Column::encode(x, noise);
    return Column::decode(code.visible, code.kept);
  }
  /// Bits of noise that decide.
  static std::uint32_t draws() {
    return 1u << ((wide ? 16 : 13) - (std::is_void_v<typename Column::kept> ? 0 : 8));
  }
};
using random_columns = testing::Types<stochastic<bf16>, stochastic<fp16>,
                                      stochastic<corrected<bf16>>, stochastic<corrected<fp16>>>;
TYPED_TEST_SUITE(random_column, random_columns);

TYPED_TEST(random_column, expects_exactly_what_it_was_given) {
  for (float x : {1.001f, -1000.3f, 0.3f, 1.0f, 0x1.fffffep9f, -0x1.3p-24f, 0x1.8p-26f, 0x1p-30f,
                  -0x1.fedp-15f, 0x1.001p-14f, 65504.0f, 0x1.fp127f, 0x1.234568p-130f, 0x1p-149f}) {
    if (std::fabs(x) > 65504 && !this->wide) continue;
    std::set<float> seen;
    double sum = 0;
    for (std::uint32_t n = 0; n < this->draws(); ++n) {
      float const got = this->rounded(x, n | 0xabc00000u);
      sum += double{got};
      seen.insert(got);
    }
    EXPECT_LE(seen.size(), 2u) << std::hexfloat << x;
    // fp16 looks no closer than at 2^-37.
    EXPECT_NEAR(sum / this->draws(), double{x}, this->wide ? 0 : 0x1p-37) << std::hexfloat << x;
    EXPECT_LE(double{*seen.begin()}, double{x});
    EXPECT_GE(double{*seen.rbegin()}, double{x} - (this->wide ? 0 : 0x1p-37));
  }
}

TYPED_TEST(random_column, becomes_infinite_from_its_bound_on) {
  auto const infinite = [&](std::uint32_t bits, std::uint32_t noise) {
    auto const code = TypeParam::encode(std::bit_cast<float>(bits), noise);
    return std::isinf(TypeParam::decode_visible(code.visible));
  };
  EXPECT_FALSE(infinite(TypeParam::overflow - 1, 0xffffffffu));
  if (this->wide) {
    EXPECT_TRUE(infinite(TypeParam::overflow, 0xffffffffu));
    EXPECT_FALSE(infinite(TypeParam::overflow, 0u));
  }
  EXPECT_TRUE(infinite(0x7f7fffffu, 0xffffffffu));
  for (std::uint32_t noise : {0u, 0xffffffffu}) {
    EXPECT_EQ(this->rounded(INFINITY, noise), INFINITY);
    EXPECT_EQ(this->rounded(-INFINITY, noise), -INFINITY);
    for (std::uint32_t nan : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu})
      EXPECT_TRUE(std::isnan(this->rounded(std::bit_cast<float>(nan), noise)));
  }
}

/// Encodes and decodes floats as lanes of F do.
template <class Column>
struct in_lanes {
  std::vector<std::uint32_t> const& patterns;
  std::vector<std::uint32_t>&visible, &kept, &decoded;

  template <class F>
  void operator()() const {
    using memfit::ops;
    using U = memfit::uint_of<F>;
    for (std::size_t i = 0; i < patterns.size(); i += static_cast<std::size_t>(ops<F>::width)) {
      auto const u = ops<F>::load(patterns.data() + i);
      auto const code = Column::encode(memfit::from_bits<F>(u), u * 0x9e3779b9u);
      ops<F>::store(visible.data() + i, code.visible & 0xffffu);
      ops<F>::store(kept.data() + i, code.kept);
      // Any two parts, too.
      ops<F>::store(decoded.data() + i, memfit::bits(Column::decode(U(u >> 16), U(u & 0xffu))));
    }
  }
};

template <class Column>
void is_the_same_in_lanes() {
  std::vector<std::uint32_t> patterns;
  for (std::uint32_t upper = 0; upper < 0x10000u; upper += 7)
    for (std::uint32_t lower : {0u, 0x80u, 0x1000u, 0x7fffu, 0x8000u, 0x8080u, 0xffffu})
      patterns.push_back(upper << 16 | lower);
  patterns.resize(patterns.size() / 64 * 64);
  std::vector<std::uint32_t> first[3];
  for (auto const& host : test::all_hosts()) {
    if (host.exec.threads() > 1) continue;
    std::vector<std::uint32_t> now[3];
    for (auto& v : now) v.resize(patterns.size());
    host.exec.run(in_lanes<Column>{patterns, now[0], now[1], now[2]});
    for (int i = 0; i < 3; ++i) {
      if (first[i].empty()) first[i] = now[i];
      ASSERT_EQ(now[i], first[i]) << host.name;
    }
  }
}

TEST(columns, are_the_same_in_lanes) {
  is_the_same_in_lanes<split<bf16>>();
  is_the_same_in_lanes<split<fp16>>();
  is_the_same_in_lanes<corrected<bf16>>();
  is_the_same_in_lanes<stochastic<bf16>>();
  is_the_same_in_lanes<stochastic<fp16>>();
  is_the_same_in_lanes<stochastic<corrected<bf16>>>();
  is_the_same_in_lanes<stochastic<corrected<fp16>>>();
}

}  // namespace
