// The gate: a multiplier that equals scaling the gradients, a limit that equals clipping them, and
// a skip flag that leaves everything alone. All are read by the step itself.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "memfit/clip.hpp"
#include "optimizer/model.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using adamw8 = test::model<memfit::adamw, memfit::float8>;

constexpr memfit::adamw rule{.lr = 0.01, .weight_decay = 0.1};

test::vectors start() {
  return {test::make_input(test::kind::normal, 700, 1), test::make_input(test::kind::normal, 3, 2)};
}
test::vectors gradients(std::uint64_t seed, float scale = 1) {
  test::vectors g{test::make_input(test::kind::normal, 700, seed),
                  test::make_input(test::kind::normal, 3, seed + 1)};
  for (auto& values : g)
    for (auto& x : values) x *= scale;
  return g;
}

TEST(gate, a_multiplier_equals_scaled_gradients_bit_for_bit) {
  adamw8 gated(memfit::host{1}, rule, start()), plain(memfit::host{1}, rule, start());
  float const multiplier = 1.0f / 1024;
  std::uint32_t const skip = 0;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    gated.optimizer().step(gradients(10 * step, 1024), {.multiplier = &multiplier, .skip = &skip});
    plain.optimizer().step(gradients(10 * step));
    ASSERT_EQ(gated.bytes(), plain.bytes()) << step;
  }
}

TEST(gate, null_means_one_and_do_not_skip) {
  adamw8 gated(memfit::host{1}, rule, start()), plain(memfit::host{1}, rule, start());
  gated.optimizer().step(gradients(1), memfit::gate{});
  plain.optimizer().step(gradients(1));
  EXPECT_EQ(gated.bytes(), plain.bytes());
}

TEST(gate, a_skipped_step_changes_nothing_and_counts_nothing) {
  for (std::uint32_t skip : {1u, 2u, 0x80000000u, 0xffffffffu}) {
    adamw8 m(memfit::host{2}, rule, start()), clean(memfit::host{2}, rule, start());
    m.optimizer().step(gradients(1));
    clean.optimizer().step(gradients(1));
    auto const before = m.bytes();
    auto poisoned = gradients(2);
    poisoned[0][5] = std::numeric_limits<float>::quiet_NaN();
    float const multiplier = HUGE_VALF;
    m.optimizer().step(poisoned, {.multiplier = &multiplier, .skip = &skip});
    EXPECT_EQ(m.bytes(), before);
    EXPECT_EQ(m.optimizer().steps_sync(0), 1);
    m.optimizer().step_one(0, poisoned[0], {.skip = &skip});
    EXPECT_EQ(m.bytes(), before);
    m.optimizer().step(gradients(3));
    clean.optimizer().step(gradients(3));
    EXPECT_EQ(m.bytes(), clean.bytes()) << "the step after a skipped one is the second step";
  }
}

TEST(gate, a_multiplier_that_is_not_finite_moves_nothing) {
  for (float multiplier : {HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN()}) {
    adamw8 m(memfit::host{1}, rule, start());
    m.optimizer().step(gradients(1));
    auto const first = m.parameter(0), second = m.parameter(1);
    m.optimizer().step(gradients(2), {.multiplier = &multiplier});
    EXPECT_EQ(m.parameter(0), first);
    EXPECT_EQ(m.parameter(1), second);
    EXPECT_EQ(m.optimizer().nonfinite_sync(), 703u);
  }
}

/// A limit equals clipped gradients bit for bit, for whole units and the rest of a tensor.
template <class Rule, class Format>
void a_limit_equals_clipped_gradients(Rule const& r) {
  for (auto const& host : test::all_hosts()) {
    test::model<Rule, Format> gated(host.exec, r, start()), plain(host.exec, r, start());
    float const multiplier = 0.5f;
    for (std::uint64_t step = 1; step <= 3; ++step) {
      auto g = gradients(10 * step, 2), clipped = gradients(10 * step);
      for (auto& values : clipped)
        for (auto& x : values) x = std::fmin(std::fmax(x, -0.7f), 0.7f);
      g[0][17] = clipped[0][17] = 0;
      gated.optimizer().step(g, memfit::clip_value({.multiplier = &multiplier}, 0.7f));
      plain.optimizer().step(clipped);
      ASSERT_EQ(gated.bytes(), plain.bytes()) << host.name << " step " << step;
    }
  }
}

TEST(gate, a_limit_equals_clipped_gradients_bit_for_bit) {
  a_limit_equals_clipped_gradients<memfit::adamw, memfit::float8>(rule);
  a_limit_equals_clipped_gradients<memfit::momentum, memfit::fp32>({.lr = 0.01});
}

TEST(gate, a_limit_hides_nothing_that_is_not_finite) {
  for (float bad : {HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN()}) {
    adamw8 m(memfit::host{1}, rule, start());
    auto g = gradients(1);
    g[0][5] = g[1][1] = bad;
    auto const before = m.parameter(0)[5];
    m.optimizer().step(g, memfit::clip_value({}, 0.5f));
    EXPECT_EQ(m.parameter(0)[5], before);
    EXPECT_EQ(m.optimizer().nonfinite_sync(), 2u);
  }
}

TEST(gate, limits_add_up_to_the_smallest_and_nonsense_is_refused) {
  EXPECT_EQ(memfit::clip_value(memfit::clip_value({}, 1), 2).limit, 1.0f);
  EXPECT_EQ(memfit::clip_value(memfit::clip_value({}, 2), 1).limit, 1.0f);
  for (float most : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()})
    test::expect_refusal<memfit::hyperparameter_error>([&] { memfit::clip_value({}, most); },
                                                       {"clip_value"});
}

}  // namespace
