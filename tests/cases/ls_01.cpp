// LS-01: a loss scale grew until it was infinite, and every gradient after that was a NaN.
// Here: it stops at 2^126, where its inverse is a normal number, too, and unscales exactly there.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/gradients.hpp"
#include "memfit/scaler.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::loss_scaler, memfit::loss_scaler_options;

loss_scaler_options growing(float initial, double growth) {
  loss_scaler_options o;
  o.initial = initial;
  o.growth = growth;
  o.interval = 1;
  return o;
}

/// A window with this gradient, which is scaled already; returns what a step would read.
float window(loss_scaler& scaler, float scaled) {
  std::vector<std::vector<float>> const gradients{{scaled}};
  memfit::global_norm norm(memfit::host{1}, gradients);
  auto const g = scaler.unscale(norm(gradients));
  float const read = *g.skip != 0 ? 0.0f : scaled * *g.multiplier;
  g.mark_stepped();
  scaler.update();
  return read;
}

TEST(ls_01, the_scale_grows_to_its_bound_and_stays_there) {
  loss_scaler scaler(memfit::host{1}, growing(65536, 2));
  float before = scaler.value_sync();
  for (int step = 1; step <= 300; ++step) {
    window(scaler, 0.0f);
    auto const now = scaler.value_sync();
    ASSERT_GE(now, before) << step;
    ASSERT_EQ(now, std::ldexp(1.0f, std::min(16 + step, 126))) << step;
    before = now;
  }
  float const inverse = 1.0f / before;
  EXPECT_TRUE(std::isnormal(inverse));
  EXPECT_EQ(window(scaler, before * 0x1p-100f), 0x1p-100f);
  EXPECT_EQ(scaler.skipped_sync(), 0);
}

TEST(ls_01, no_growth_passes_the_bound) {
  for (double growth : {1.5, 2.0, 3.7, 1e10, 1e300}) {
    loss_scaler scaler(memfit::host{1}, growing(0x1p125f, growth));
    for (int i = 0; i < 5; ++i) {
      window(scaler, 0.0f);
      EXPECT_LE(scaler.value_sync(), 0x1p126f) << growth;
    }
    EXPECT_EQ(scaler.value_sync(), 0x1p126f) << growth;
  }
}

TEST(ls_01, a_start_above_the_bound_is_refused) {
  for (float start : {0x1p127f, 3e38f, HUGE_VALF})
    test::expect_refusal<memfit::hyperparameter_error>(
        [&] { loss_scaler(memfit::host{1}, growing(start, 1e10)); }, {"initial"});
}

TEST(ls_01, nor_does_it_vanish_in_ever_more_overflows) {
  loss_scaler scaler(memfit::host{1});
  for (int step = 0; step < 300; ++step) {
    EXPECT_EQ(window(scaler, HUGE_VALF), 0.0f);
    ASSERT_TRUE(std::isnormal(scaler.value_sync()));
  }
  EXPECT_EQ(scaler.value_sync(), 0x1p-126f);
  EXPECT_EQ(window(scaler, 0x1p-126f), 1.0f);
}

}  // namespace
