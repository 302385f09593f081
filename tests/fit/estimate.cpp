// The estimate: bytes by category of hand-made models, and what it refuses.
#include <gtest/gtest.h>

#include "memfit/cost.hpp"
#include "memfit/fit/estimate.hpp"
#include "memfit/optimizer.hpp"

namespace {

using namespace memfit;

fit::model one_tensor(std::int64_t count) {
  return {.name = "one tensor",
          .stages = {{"all", {{"w", count}}}},
          .chain = [](fit::pass const&, fit::rates const&) { return checkpoint::chain(1); },
          .workspace = {}};
}

TEST(fit_estimate, a_billion_fp32_parameters_with_adam_take_16_gb) {
  constexpr std::int64_t count = 1'000'000'000;
  auto const b = fit::estimate(one_tensor(count),
                               {.column = cost_of_column<fp32>(), .states = cost_of<adam, fp32>()});
  EXPECT_EQ(b.total() - b.workspace, 16 * count);
  EXPECT_EQ(b.parameters, 4 * count);
  EXPECT_EQ(b.gradients, 4 * count);
  EXPECT_EQ(b.moments, (std::vector{4 * count, 4 * count}));
}

}  // namespace
