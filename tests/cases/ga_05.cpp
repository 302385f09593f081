// GA-05: a norm that was not finite became NaN everywhere or a negative factor that reversed every
// gradient, and a norm of zero crashed.
// Here: the step is skipped and nothing changes; zero is a norm like others.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/scaler.hpp"
#include "optimizer/model.hpp"

namespace {

using adamw8 = test::model<memfit::adamw, memfit::float8, memfit::split<memfit::bf16>>;

/// How the gradients come to the clipping: summed, with a scale, or as they are.
enum class way { sums, scaled, plain };

memfit::gate clip(way which, test::vectors const& g, memfit::gradient_accumulator<>& sums,
                  memfit::loss_scaler& scaler, memfit::norm_clipper& clipper,
                  memfit::global_norm& norm, bool percentile) {
  if (which == way::plain)
    return percentile ? clipper.percentile(norm(g), {}, 10) : clipper.limit(norm(g), {}, 1);
  sums.add_sums(g, 1);
  auto const gate = which == way::scaled ? scaler.unscale(sums) : sums.close();
  return percentile ? memfit::clip_percentile(sums, gate, 10) : memfit::clip_norm(sums, gate, 1);
}

TEST(ga_05, a_norm_that_is_not_finite_skips_and_changes_nothing) {
  for (auto which : {way::sums, way::scaled, way::plain})
    for (bool percentile : {false, true})
      for (auto const& g : std::vector<test::vectors>{
               {{HUGE_VALF, 1}}, {{NAN, 1}}, {{-HUGE_VALF, HUGE_VALF}}, {{1, -NAN}}}) {
        adamw8 m(memfit::host{1}, memfit::adamw{.lr = 0.1, .weight_decay = 0.1}, {{1, 2}});
        m.optimizer().step(test::vectors{{1, -1}});
        memfit::gradient_accumulator sums(memfit::host{1}, g);
        memfit::loss_scaler scaler(memfit::host{1});
        memfit::norm_clipper clipper(memfit::host{1});
        memfit::global_norm norm(memfit::host{1}, g);
        auto const gate = clip(which, g, sums, scaler, clipper, norm, percentile);
        EXPECT_EQ(*gate.skip, memfit::skip_nonfinite);
        EXPECT_GT(*gate.multiplier, 0.0f);
        EXPECT_FALSE(std::isnan(*gate.multiplier));
        auto const before = m.bytes();
        m.optimizer().step(g, gate);
        EXPECT_EQ(m.bytes(), before);
      }
}

/// The gradient that a step reads after clipping to 1.
std::vector<float> clipped(std::vector<float> const& gradient) {
  test::vectors parameters{std::vector<float>(gradient.size())};
  memfit::optimizer<memfit::sgd, memfit::fp32> opt(memfit::host{1}, memfit::sgd{.lr = 1},
                                                   parameters);
  memfit::gradient_accumulator sums(memfit::host{1}, parameters);
  sums.add_sums(test::vectors{gradient}, 1);
  opt.step(sums, memfit::clip_norm(sums, sums.close(), 1));
  EXPECT_EQ(opt.steps_sync(0), 1);
  for (auto& x : parameters[0]) x = -x;
  return parameters[0];
}

TEST(ga_05, a_norm_of_zero_is_a_norm_like_others) {
  EXPECT_EQ(clipped({0, 0, 0}), (std::vector<float>{0, 0, 0}));
}

TEST(ga_05, ordinary_norms_are_clipped_to_the_limit_and_no_sign_changes) {
  auto const got = clipped({2, 0});
  EXPECT_NEAR(got[0], 1, 1e-6f);
  EXPECT_EQ(got[1], 0.0f);
  for (float x : {1e-30f, 1.0f, 1e19f, 3e38f}) {
    auto const pair = clipped({x, -x});
    EXPECT_GT(pair[0], 0.0f);
    EXPECT_EQ(pair[1], -pair[0]);
    EXPECT_NEAR(pair[0], std::fmin(x, std::sqrt(0.5f)), 1e-6f);
  }
}

}  // namespace
