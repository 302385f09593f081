// The references themselves: against PyTorch's numbers, and against their own definitions.
// A wrong reference would pass a wrong library.
#include <gtest/gtest.h>

#include "support/golden_rule_of.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/reference_code.hpp"
#include "support/tracked.hpp"

namespace {

template <class Rule>
void follows_pytorch(Rule const& rule, std::size_t slots, golden::rule_case const& c) {
  std::vector<reference::element<double>> tensor;
  for (double p : c.start) tensor.push_back({p, {}});
  for (std::size_t k = 0; k < c.steps.size(); ++k) {
    reference::take_step(rule, tensor, c.steps[k].g, static_cast<std::int64_t>(k) + 1);
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      auto const& e = tensor[i];
      EXPECT_NEAR(e.p, c.steps[k].p[i], 1e-14) << c.rule << " element " << i << " step " << k + 1;
      for (std::size_t s = 0; s < slots; ++s)
        EXPECT_NEAR(e.s[s], c.steps[k].s[s][i], 1e-13 * (1 + std::fabs(e.s[s])))
            << c.rule << " element " << i << " step " << k + 1 << " slot " << s;
    }
  }
}

TEST(reference, rules_follow_pytorch) {
  auto const cases = golden::rule_cases();
  ASSERT_EQ(cases.size(), 17u);
  for (auto const& c : cases) {
    ASSERT_EQ(c.steps.size(), 8u);
    EXPECT_TRUE(golden::with_rule_of(c, [&c](auto rule) {
      follows_pytorch(reference::of(rule), std::size(rule.slots), c);
    })) << c.rule;
  }
}

TEST(reference, tables_ascend_and_contain_zero_and_one) {
  for (bool is_signed : {true, false}) {
    for (auto const& [name, table] : {std::pair{"dynamic8", reference::dynamic8(is_signed)},
                                      std::pair{"linear8", reference::linear8(is_signed)},
                                      std::pair{"float8", reference::float8(is_signed)}}) {
      SCOPED_TRACE(std::string(name) + (is_signed ? " signed" : " unsigned"));
      for (std::size_t i = 1; i < table.size(); ++i) EXPECT_LT(table[i - 1].value, table[i].value);
      EXPECT_EQ(table.back().value, 1.0f);
      EXPECT_EQ(reference::nearest_distance(table, 0), 0);
      EXPECT_EQ(table.front().value < 0, is_signed);
    }
  }
}

TEST(reference, dynamic_map_is_the_published_formula) {
  for (bool is_signed : {true, false}) {
    for (auto const& [code, value] : reference::dynamic8(is_signed)) {
      int const k = is_signed ? static_cast<int>(code) - 127 : static_cast<int>(code);
      int const a = std::abs(k) + (is_signed ? 0 : 1);
      int const decade = std::ilogb(a);
      double exact = std::pow(10, decade - (is_signed ? 6 : 7)) *
                     (0.1 + 0.9 * (a - std::ldexp(1, decade) + 0.5) / std::ldexp(1, decade));
      if (k == 0) exact = 0;
      if (code == 255) exact = 1;
      EXPECT_NEAR(value, std::copysign(exact, k), exact * 3e-7) << "code " << code;
    }
  }
}

TEST(reference, a_tracked_bound_covers_fp32) {
  auto const inputs = test::make_input(test::kind::lognormal, 4000, 1);
  double largest_share = 0;
  for (std::size_t i = 0; i + 3 < inputs.size(); i += 4) {
    float const a = inputs[i], b = inputs[i + 1], c = inputs[i + 2], d = inputs[i + 3];
    using reference::tracked;
    auto const held = [](float x) { return tracked::stored(x); };
    auto const exact = sqrt(held(a) * held(a) + held(b) * held(b)) / (held(c) * held(c)) + held(d);
    float const got = std::sqrt(a * a + b * b) / (c * c) + d;
    ASSERT_LE(std::fabs(got - exact.value), exact.bound);
    largest_share = std::max(largest_share, std::fabs(got - exact.value) / exact.bound);
  }
  EXPECT_GT(largest_share, 0.2) << "the bound is too loose to find anything";
}

TEST(support, canaries_see_a_write_on_either_side) {
  for (std::int64_t shift : {0, 1, 3}) {
    test::guarded<float> buffer(5, shift);
    EXPECT_TRUE(buffer.intact());
    buffer[4] = 1;
    EXPECT_TRUE(buffer.intact());
    float* volatile const floats = buffer.data();
    floats[5] = 1;
    EXPECT_FALSE(buffer.intact());
    test::guarded<std::uint8_t> bytes(5, shift);
    std::uint8_t* volatile const first = bytes.data();
    first[-1] = 0;
    EXPECT_FALSE(bytes.intact());
  }
}

}  // namespace
