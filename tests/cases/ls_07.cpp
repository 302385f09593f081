// LS-07: gradients were clipped while they were still scaled, so that nearly every step was clipped
// to nothing.
// Here: a norm is compared after the gate's multiplier, whatever is in it.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/scaler.hpp"

namespace {

using vectors = std::vector<std::vector<float>>;

/// The gradient with which a step is taken, and the norm that is reported.
struct outcome {
  std::vector<float> gradient;
  double norm;
};

outcome clipped(std::vector<float> const& gradient, float scale, double most, int micro_batches,
                bool percentile = false) {
  memfit::host const exec{1};
  vectors parameters{{0, 0}};
  memfit::optimizer<memfit::sgd, memfit::fp32> opt(exec, memfit::sgd{.lr = 1}, parameters);
  memfit::gradient_accumulator sums(exec, parameters);
  memfit::loss_scaler scaler(exec, memfit::loss_scaler_options::fixed(scale));
  auto scaled = gradient;
  for (auto& x : scaled) x *= scale;
  for (int i = 0; i < micro_batches; ++i) sums.add(vectors{scaled}, 7);
  auto g = scaler.unscale(sums);
  g = memfit::clip_norm(sums, g, most);
  auto const norm = sums.clipper().norm_sync();
  if (percentile) g = memfit::clip_percentile(sums, g, 50);
  opt.step(sums, g);
  scaler.update(g);
  return {{-parameters[0][0], -parameters[0][1]}, norm};
}

void expect_near(outcome const& got, outcome const& expected) {
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(got.gradient[i], expected.gradient[i], 1e-6f * std::fabs(expected.gradient[i]));
  EXPECT_NEAR(got.norm, expected.norm, 1e-6 * expected.norm);
}

TEST(ls_07, limits_are_in_units_of_unscaled_gradients) {
  for (int micro_batches : {1, 3})
    for (float scale : {1.0f, 1024.0f, 1000.0f, 0x1p-20f}) {
      SCOPED_TRACE(scale);
      expect_near(clipped({3, 4}, scale, 1, micro_batches), {{0.6f, 0.8f}, 5});
      expect_near(clipped({0.3f, 0.4f}, scale, 1, micro_batches), {{0.3f, 0.4f}, 0.5});
      expect_near(clipped({3, 4}, scale, 1, micro_batches, true), {{0.6f, 0.8f}, 5});
    }
}

}  // namespace
