// LB-12: weight decay vanished in bf16 parameters, rounded away before the one rounding that
// counts. Here: 10000 steps of pure decay in every column that promises to keep small changes.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"

namespace {

constexpr double exact = 0.904836966;  // (1 - 1e-5)^10000

template <class Format, class Column>
std::vector<float> after_ten_thousand_steps() {
  std::vector<memfit::bf16> w(4096, memfit::bf16(1.0f));
  std::vector<float> const g(4096, 0.0f);
  memfit::optimizer<memfit::adamw, Format, Column> opt(
      memfit::host{1}, {.lr = 1e-3, .weight_decay = 0.01},
      std::vector<memfit::tensor_ref<memfit::bf16>>{{w.data(), 4096, "w"}}, {.min_quantized = 1});
  for (int step = 0; step < 10'000; ++step) opt.step_one(0, g);
  std::vector<float> seen;
  for (auto x : w) seen.push_back(static_cast<float>(x));
  return seen;
}

double mean(std::vector<float> const& values) {
  double sum = 0;
  for (float x : values) sum += double{x};
  return sum / static_cast<double>(values.size());
}

/// bf16 has steps of 2^-8 here: what is hidden behind it shows within half of one.
void all_near_exact(std::vector<float> const& values) {
  for (float x : values) ASSERT_NEAR(x, exact, 2e-4 + 0x1p-9);
}

TEST(LB_12, stochastic_rounding_decays_on_average) {
  EXPECT_NEAR(mean((after_ten_thousand_steps<memfit::fp32, memfit::stochastic<memfit::bf16>>())),
              exact, 0.002);
  EXPECT_NEAR(mean((after_ten_thousand_steps<memfit::float8, memfit::stochastic<memfit::bf16>>())),
              exact, 0.002);
}

TEST(LB_12, stochastic_rounding_does_not_move_in_lock_step) {
  auto const values = after_ten_thousand_steps<memfit::fp32, memfit::stochastic<memfit::bf16>>();
  double const m = mean(values);
  double variance = 0;
  for (float x : values) variance += std::pow(double{x} - m, 2);
  // Independent elements spread by sqrt(10000 P(down)) steps of the grid; lock-step gives none.
  EXPECT_GT(std::sqrt(variance / 4096), 0.005);
}

TEST(LB_12, a_master_copy_decays) {
  all_near_exact(after_ten_thousand_steps<memfit::fp32, memfit::master<memfit::bf16>>());
}

TEST(LB_12, a_remainder_decays) {
  all_near_exact(after_ten_thousand_steps<memfit::float8, memfit::split<memfit::bf16>>());
}

/// Steps of 0.65 units of its 24 bits each: to nearest they would be whole ones, or none.
TEST(LB_12, a_correction_rounded_at_random_decays_on_average) {
  using column = memfit::stochastic<memfit::corrected<memfit::bf16>>;
  for (float x : after_ten_thousand_steps<memfit::float8, column>())
    ASSERT_NEAR(x, exact, 0.005 + 0x1p-9);  // 7 sigma
}

}  // namespace
