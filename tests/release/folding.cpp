// Windows of micro-batches whose gradients join the moments one by one: against plain steps,
// against the mathematics in double, with unequal, empty and absent micro-batches.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "memfit/release.hpp"
#include "optimizer/model.hpp"
#include "support/inputs.hpp"
#include "support/plain_executor.hpp"

namespace {

using views = std::vector<memfit::scalar_view>;

memfit::scalar_view view(std::vector<float> const& g) {
  return {g.data(), memfit::scalar_kind::fp32, std::ssize(g)};
}
std::vector<float> input(std::int64_t n, std::uint64_t seed) {
  return test::make_input(test::kind::normal, n, seed);
}

constexpr memfit::adamw rule{
    .lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};

/// Moments of 300 elements in root8, of 7 in fp32.
class folding : public testing::Test {
 protected:
  using adamw8 = test::model<memfit::adamw, memfit::root8>;
  using release = memfit::gradient_release<memfit::optimizer<memfit::adamw>>;
  test::vectors const start{input(300, 1), input(7, 2)};
  adamw8 plain{memfit::host{1}, rule, start, 100}, folded{memfit::host{2}, rule, start, 100};
  release of{memfit::host{2}, folded.optimizer()};

  void add(std::int64_t items, test::vectors const& gradients) {
    of.micro_batch(items);
    of.complete(0, gradients);
  }
};

TEST_F(folding, a_window_of_one_micro_batch_is_a_plain_step) {
  for (std::uint64_t step = 1; step <= 3; ++step) {
    test::vectors const g{input(300, 10 * step), input(7, step)};
    plain.optimizer().step(g);
    of.begin_folded(12);
    add(12, g);
    of.finish();
    ASSERT_EQ(folded.bytes(), plain.bytes());
  }
}

TEST_F(folding, micro_batches_without_items_do_not_count_whatever_they_hold) {
  test::vectors const g{input(300, 3), input(7, 4)};
  auto lost = g;
  for (auto& x : lost) x.assign(x.size(), std::numeric_limits<float>::quiet_NaN());
  plain.optimizer().step(g);
  of.begin_folded(5);
  add(0, lost);
  add(5, g);
  add(0, lost);
  of.finish();
  EXPECT_EQ(folded.bytes(), plain.bytes());
}

TEST_F(folding, equal_micro_batches_are_a_plain_step_up_to_rounding) {
  for (std::uint64_t step = 1; step <= 3; ++step) {
    test::vectors const g{{}, input(7, step)};
    plain.optimizer().step(g);
    of.begin_folded(7);
    for (int i = 0; i < 7; ++i) add(1, g);
    of.finish();
    EXPECT_EQ(folded.optimizer().steps_sync(1), static_cast<std::int64_t>(step));
    for (int slot : {0, 1}) {
      auto const a = folded.optimizer().moment_sync(1, slot),
                 b = plain.optimizer().moment_sync(1, slot);
      for (std::size_t k = 0; k < 7; ++k) EXPECT_NEAR(a[k], b[k], 2e-6f * std::fabs(b[k]));
    }
    for (std::size_t k = 0; k < 7; ++k)
      EXPECT_NEAR(folded.parameter(1)[k], plain.parameter(1)[k], 1e-6f);
  }
}

// A tensor that has part in no micro-batch, in some, and in all of a window.
TEST_F(folding, absent_tensors_begin_when_they_come) {
  test::vectors const g{input(300, 3), input(7, 4)};
  of.begin_folded(4);
  add(1, {{}, {}});
  EXPECT_EQ(folded.bytes(), plain.bytes());
  add(1, {g[0], {}});
  add(2, g);
  of.finish();
  EXPECT_EQ(folded.optimizer().steps_sync(0), 1);
  EXPECT_EQ(folded.optimizer().steps_sync(1), 1);
  auto const m = folded.optimizer().moment_sync(1, 0);
  for (std::size_t k = 0; k < 7; ++k) EXPECT_NEAR(m[k], 0.5f * 0.2f * g[1][k], 1e-6f);
}

TEST_F(folding, a_tensor_without_elements_counts_its_windows) {
  adamw8 m{memfit::host{1}, rule, {{1.0f}, {}}};
  release r{memfit::host{1}, m.optimizer()};
  r.begin_folded(2);
  for (int i = 0; i < 2; ++i) {
    r.micro_batch(1);
    r.complete(0, test::vectors{{1.0f}, {}});
  }
  r.finish();
  for (std::size_t i : {0u, 1u}) EXPECT_EQ(m.optimizer().steps_sync(i), 1) << i;
}

// GA-01: windows of 10 in one token and 6 in three, in both orders, with an empty micro-batch, and
// token by token: the first moment is that of the mean over tokens, 4.
TEST_F(folding, ga_01_weighs_micro_batches_by_their_tokens) {
  struct micro_batch {
    std::int64_t tokens;
    float mean;
  };
  constexpr micro_batch a{1, 10}, b{3, 2}, none{0, 0}, one{1, 2};
  for (auto const& window :
       std::vector<std::vector<micro_batch>>{{a, b}, {b, a}, {a, b, none}, {a, one, one, one}}) {
    adamw8 m{memfit::host{1}, rule, {{1.0f}}};
    m.optimizer().keep_fp32("*");
    release r{memfit::host{1}, m.optimizer()};
    r.begin_folded(4);
    double squares = 0;
    for (auto const& [tokens, mean] : window) {
      r.micro_batch(tokens);
      r.complete(0, test::vectors{{mean}});
      squares +=
          static_cast<double>(mean) * static_cast<double>(mean) * static_cast<double>(tokens) / 4;
    }
    r.finish();
    EXPECT_NEAR(m.optimizer().moment_sync(0, 0)[0], 0.2 * 4, 1e-6);
    EXPECT_NEAR(m.optimizer().moment_sync(0, 1)[0], 0.05 * squares, 1e-5);
  }
}

TEST_F(folding, the_norm_of_a_window_is_the_root_of_the_mean_square) {
  release measured{memfit::host{1}, folded.optimizer(), {.measure = true}};
  measured.begin_folded(4);
  measured.micro_batch(1);
  measured.complete(1, test::vectors{{3, 0, 0, 0, 0, 0, 4}});
  measured.micro_batch(3);
  measured.complete(1, test::vectors{{0, 0, 1, 0, 0, 0, 0}});
  measured.finish();
  EXPECT_NEAR(measured.norm_sync(), std::sqrt(0.25 * 25 + 0.75), 1e-12);
}

// Once some micro-batch is not finite the parameters of the stages from there on stay, and the
// counters say how often the moments have decayed.
TEST_F(folding, a_micro_batch_that_is_not_finite_ends_the_window_for_its_stage) {
  memfit::loss_scaler scaler(memfit::host{1}, {.initial = 2});
  test::vectors g{input(300, 3), input(7, 4)};
  auto bad = g;
  bad[0][0] = std::numeric_limits<float>::infinity();
  of.begin_folded(3, scaler.scale());
  add(1, g);
  auto const begun = folded.bytes();
  add(1, bad);
  add(1, g);
  scaler.update(of.finish(scaler));
  EXPECT_EQ(folded.bytes(), begun);
  EXPECT_EQ(folded.parameter(0), plain.parameter(0));
  EXPECT_EQ(folded.optimizer().steps_sync(0), 1);
  EXPECT_EQ(scaler.value_sync(), 1);
}

/// What a window of unequal micro-batches makes of one element, in double.
template <class Rule>
void matches_the_mathematics() {
  Rule r{};
  r.lr = 0.01, r.beta1 = 0.8, r.beta2 = 0.95, r.eps = 1e-3, r.weight_decay = 0.1;
  constexpr bool coupled = !std::is_same_v<Rule, memfit::adamw>;
  auto const start = input(50, 1);
  test::vectors parameters{start};
  memfit::optimizer<Rule, memfit::fp32> opt(test::plain_executor{}, r, parameters);
  std::vector<double> p(start.begin(), start.end()), m(50), v(50);
  for (std::int64_t step = 1; step <= 8; ++step) {
    constexpr float shares[] = {0.5f, 0.125f, 0.375f};
    auto const k = r.at(step);
    for (std::int64_t part = 0; part < 3; ++part) {
      float const share = shares[part];
      auto const g = input(50, static_cast<std::uint64_t>(10 * step + part));
      opt.step_some({0}, views{view(g)}, {}, {part, share, part == 2});
      for (std::size_t i = 0; i < 50; ++i) {
        double const x = static_cast<double>(g[i]) + (coupled ? 0.1 * p[i] : 0);
        m[i] = (part == 0 ? 0.8 * m[i] : m[i]) + 0.2 * static_cast<double>(share) * x;
        v[i] = (part == 0 ? 0.95 * v[i] : v[i]) + 0.05 * static_cast<double>(share) * x * x;
        if (part < 2) continue;
        double const root = std::sqrt(v[i]) * static_cast<double>(k.inverse_root_correction2);
        p[i] = p[i] * (coupled ? 1 : 1 - 0.01 * 0.1) -
               static_cast<double>(k.step_size) * m[i] / (root + static_cast<double>(k.eps));
      }
      for (std::size_t i = 0; i < 50; ++i)
        ASSERT_NEAR(parameters[0][i], p[i], 1e-6) << step << " " << part << " " << i;
    }
    EXPECT_EQ(opt.steps_sync(0), step);
  }
  auto const first = opt.moment_sync(0, 0), second = opt.moment_sync(0, 1);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(first[i], m[i], 1e-6);
    EXPECT_NEAR(second[i], v[i], 1e-6);
  }
}

TEST(folded_moments, match_the_mathematics) {
  matches_the_mathematics<memfit::adam>();
  matches_the_mathematics<memfit::adamw>();
  matches_the_mathematics<memfit::radam>();
}

TEST(folded_moments, are_offered_by_rules_that_are_linear_in_the_gradient) {
  using namespace memfit;
  static_assert(folding_rule<adam> && folding_rule<adamw> && folding_rule<radam>);
  static_assert(!folding_rule<sgd> && !folding_rule<momentum> && !folding_rule<lion>);
  static_assert(!folding_rule<amsgrad> && !folding_rule<nadam> && !folding_rule<lamb>);
  static_assert(!optimizer<lion>::folds && optimizer<adamw, float8>::folds);
}

TEST(folded_moments, draw_other_noise_in_every_part) {
  auto const key = memfit::make_noise_key(1, 2, 3);
  auto const same = [&](std::int64_t a, std::int64_t b) {
    auto const x = memfit::part_key(key, a), y = memfit::part_key(key, b);
    return x.first == y.first && x.second == y.second;
  };
  EXPECT_EQ(memfit::part_key(key, 0).first, key.first);
  EXPECT_EQ(memfit::part_key(key, 0).second, key.second);
  for (std::int64_t part = 1; part < 100; ++part)
    for (std::int64_t other = 0; other < part; ++other) EXPECT_FALSE(same(part, other));
}

}  // namespace
