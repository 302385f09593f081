// GA-01: the means of micro-batches were averaged, as if all had as many tokens.
// Here: the window is the mean over all items, however they are divided; none is no division by 0.
#include <gtest/gtest.h>

#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "support/ranks.hpp"

namespace {

struct micro_batch {
  double tokens;
  float sum;
};
constexpr micro_batch a{1, 10}, b{3, 6}, c{0, 0};

/// The gradient that a step reads, given micro-batches as sums or as means; a mean over no tokens
/// is a NaN.
template <class Param>
float gradient(std::vector<micro_batch> const& window, bool means,
               memfit::thread_rank* rank = nullptr) {
  std::vector<std::vector<float>> parameters{{0}};
  memfit::optimizer<memfit::sgd, memfit::fp32> opt(memfit::host{1}, memfit::sgd{.lr = 1},
                                                   parameters);
  memfit::gradient_accumulator<Param> sums(memfit::host{1}, parameters);
  for (auto const& m : window) {
    std::vector<std::vector<float>> const g{{means ? m.sum / static_cast<float>(m.tokens) : m.sum}};
    if (means)
      sums.add(g, m.tokens);
    else
      sums.add_sums(g, m.tokens);
  }
  if constexpr (std::is_same_v<Param, memfit::fp32>)
    if (rank != nullptr) sums.reduce(*rank);
  auto const g = sums.close();
  float const read = static_cast<float>(sums.begin()->data[0]) * *g.multiplier;
  opt.step(sums, g);
  EXPECT_EQ(opt.steps_sync(0), *g.skip != 0 ? 0 : 1);
  EXPECT_EQ(parameters[0][0], -read);
  return read;
}

template <class Param>
void is_the_mean_over_all_tokens() {
  for (bool means : {false, true})
    for (auto const& window : std::vector<std::vector<micro_batch>>{
             {a, b}, {b, a}, {a, b, c}, {c, b, a}, {{1, 10}, {1, 2}, {1, 2}, {1, 2}}, {{4, 16}}})
      EXPECT_NEAR(gradient<Param>(window, means), 4.0f, 4e-6f) << window.size() << means;
}

TEST(ga_01, the_window_is_the_mean_over_all_tokens) {
  is_the_mean_over_all_tokens<memfit::fp32>();
  is_the_mean_over_all_tokens<memfit::split<memfit::bf16>>();
}

TEST(ga_01, windows_without_tokens_are_zero_and_skipped) {
  for (bool means : {false, true}) {
    EXPECT_EQ(gradient<memfit::fp32>({c, c}, means), 0.0f);
    EXPECT_EQ(gradient<memfit::fp32>({}, means), 0.0f);
  }
}

TEST(ga_01, over_two_ranks) {
  for (bool means : {false, true})
    test::as_ranks(2, [means](memfit::thread_rank& end) {
      EXPECT_NEAR(gradient<memfit::fp32>({end.rank() == 0 ? a : b}, means, &end), 4.0f, 4e-6f);
    });
}

}  // namespace
