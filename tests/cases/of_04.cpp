// OF-04: repeated calls within one step saw different bias corrections.
// Here: sub-groups equal one undivided update, corrections at any step, and one counter per tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"

namespace {

using memfit::tensor_ref;
using vectors = std::vector<std::vector<float>>;

template <class Rule, class Format>
void sub_groups_are_equal() {
  constexpr std::int64_t n = 512;
  auto const start = test::make_input(test::kind::normal, n, 1);
  std::vector<std::vector<float>> groups(3, start);
  std::vector<float> whole;
  for (auto const& group : groups) whole.insert(whole.end(), group.begin(), group.end());
  Rule rule{};
  rule.lr = 0.01;
  rule.weight_decay = 0.1;
  memfit::optimizer<Rule, Format> divided(memfit::host{2}, rule, groups, {.min_quantized = 1}),
      undivided(memfit::host{2}, rule, vectors{}, {.min_quantized = 1});
  undivided.add(whole);
  for (int step = 1; step <= 5; ++step) {
    auto const g = test::make_input(test::kind::normal, n, static_cast<std::uint64_t>(step));
    std::vector<float> all;
    for (std::size_t i = 0; i < 3; ++i) {
      divided.step_one(i, g);
      all.insert(all.end(), g.begin(), g.end());
    }
    undivided.step_one(0, all);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(test::bytes_of(groups[i]), test::bytes_of(groups[0])) << "step " << step;
      ASSERT_TRUE(std::equal(groups[i].begin(), groups[i].end(),
                             whole.begin() + static_cast<std::ptrdiff_t>(i) * n))
          << "step " << step << " group " << i;
    }
  }
}

TEST(OF_04, a_sub_groups_are_equal_and_equal_one_update) {
  sub_groups_are_equal<memfit::adam, memfit::fp32>();
  sub_groups_are_equal<memfit::adamw, memfit::float8>();
  sub_groups_are_equal<memfit::momentum, memfit::dynamic8>();
}

TEST(OF_04, b_corrections_depend_on_the_step_alone) {
  memfit::adam const rule{.beta1 = 0.9, .beta2 = 0.999};
  EXPECT_NEAR(rule.at(3).correction1, 0.271, 1e-9);
  EXPECT_NEAR(rule.at(3).correction2, 0.002997001, 1e-9);
  rule.at(2);
  EXPECT_NEAR(rule.at(5).correction1, 0.40951, 0.40951e-6);
  EXPECT_NEAR(rule.at(5).correction2, 0.004990009995, 0.00499e-6);
  memfit::adamw const decoupled{.beta1 = 0.9, .beta2 = 0.999};
  EXPECT_EQ(decoupled.at(5).correction1, rule.at(5).correction1);
  EXPECT_EQ(decoupled.at(5).correction2, rule.at(5).correction2);
}

TEST(OF_04, c_each_tensor_counts_its_own_steps) {
  for (bool one_by_one : {false, true}) {
    std::vector<float> p(4, 0.0f), q(4, 0.0f);
    std::vector<float> const g(4, 1.0f);
    memfit::optimizer<memfit::adam, memfit::fp32> opt(
        memfit::host{1}, {.lr = 1e-3},
        std::vector<tensor_ref<float>>{{p.data(), 4, "p"}, {q.data(), 4, "q"}});
    tensor_ref<float const> const present{g.data(), 4}, absent;
    for (int step = 1; step <= 4; ++step) {
      bool const q_too = step == 1 || step == 4;
      if (one_by_one) {
        opt.step_one(0, present);
        if (q_too) opt.step_one(1, present);
      } else {
        opt.step(std::vector{present, q_too ? present : absent});
      }
    }
    for (float x : p) EXPECT_NEAR(x, -0.004, 0.004e-5);
    for (float x : q) EXPECT_NEAR(x, -0.002, 0.002e-5);
    EXPECT_EQ(opt.steps_sync(0), 4);
    EXPECT_EQ(opt.steps_sync(1), 2);
  }
}

}  // namespace
