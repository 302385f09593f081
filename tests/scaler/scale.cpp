// How the scale moves: hysteresis, bounds, fixed scales, and saving it all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/scaler.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::loss_scaler, memfit::loss_scaler_options;

/// A window whose gradients have this norm, stepped with.
void window(loss_scaler& scaler, double norm) {
  scaler.unscale(&norm).mark_stepped();
  scaler.update();
}
void window(loss_scaler& scaler, bool overflow) {
  window(scaler, overflow ? HUGE_VAL : 1.0);
}

loss_scaler_options with(float initial, double growth, double backoff, int interval,
                         int hysteresis = 1) {
  loss_scaler_options o;
  o.initial = initial;
  o.growth = growth;
  o.backoff = backoff;
  o.interval = interval;
  o.hysteresis = hysteresis;
  return o;
}

/// Megatron-LM's scaler, written out, and with the upper bound.
struct reference {
  double scale;
  int interval, hysteresis, clean = 0, left = hysteresis;
  void update(bool overflow) {
    if (overflow) {
      clean = 0;
      left -= 1;
      if (left <= 0) scale = std::max(scale * 0.5, 1.0);
    } else {
      clean += 1;
      if (clean == interval) {
        clean = 0;
        left = hysteresis;
        scale = std::min(scale * 2, 0x1p126);
      }
    }
  }
};

TEST(loss_scaler, hysteresis_is_that_of_the_reference) {
  std::mt19937 bits(1);
  for (int hysteresis : {1, 2, 3, 7})
    for (int interval : {1, 4, 10}) {
      auto options = with(1024, 2, 0.5, interval, hysteresis);
      options.least = 1;
      loss_scaler scaler(memfit::host{1}, options);
      reference expected{1024, interval, hysteresis};
      for (int i = 0; i < 300; ++i) {
        bool const overflow = bits() % 5 < 2;
        window(scaler, overflow);
        expected.update(overflow);
        ASSERT_EQ(scaler.value_sync(), expected.scale) << hysteresis << ' ' << interval << ' ' << i;
      }
    }
}

TEST(loss_scaler, stops_at_its_bounds) {
  auto options = with(100, 3, 0.3, 1);
  options.least = 10;
  options.most = 1000;
  loss_scaler scaler(memfit::host{1}, options);
  for (float expected : {300.f, 900.f, 1000.f, 1000.f}) {
    window(scaler, false);
    EXPECT_EQ(scaler.value_sync(), expected);
  }
  for (float expected : {300.f, 90.f, 27.f, 10.f, 10.f}) {
    window(scaler, true);
    EXPECT_NEAR(scaler.value_sync(), expected, 1e-3f);
  }
}

TEST(loss_scaler, a_fixed_scale_never_moves_and_skips_all_the_same) {
  loss_scaler scaler(memfit::host{1}, loss_scaler_options::fixed(1000));
  for (int i = 0; i < 5000; ++i) window(scaler, i % 3 == 0);
  EXPECT_EQ(scaler.value_sync(), 1000.0f);
  EXPECT_EQ(scaler.skipped_sync(), 1667);
  double const norm = std::nan("");
  auto const g = scaler.unscale(&norm);
  EXPECT_EQ(*g.skip, memfit::skip_nonfinite);
  EXPECT_EQ(*g.multiplier, 1.0f / 1000.0f);
}

TEST(loss_scaler, goes_on_from_a_saved_state_as_if_it_had_never_stopped) {
  std::mt19937 bits(2);
  auto const options = with(3000, 1.5, 0.7, 4, 3);
  loss_scaler whole(memfit::host{1}, options);
  for (int i = 0; i < 57; ++i) window(whole, bits() % 4 == 0);
  auto const saved = whole.state_sync();
  loss_scaler resumed(memfit::host{1});
  resumed.load(saved);
  for (int i = 0; i < 100; ++i) {
    bool const overflow = bits() % 4 == 0;
    window(whole, overflow);
    window(resumed, overflow);
    ASSERT_EQ(resumed.value_sync(), whole.value_sync());
  }
  auto const a = whole.state_sync(), b = resumed.state_sync();
  EXPECT_EQ(a.clean, b.clean);
  EXPECT_EQ(a.tolerance, b.tolerance);
  EXPECT_EQ(a.skipped, b.skipped);
  EXPECT_EQ(b.options.interval, 4);
}

TEST(loss_scaler, refuses_options_by_name) {
  struct refused {
    char const* name;
    void (*spoil)(loss_scaler_options&);
  };
  constexpr refused all[] = {
      {"initial", [](loss_scaler_options& o) { o.initial = 0; }},
      {"initial", [](loss_scaler_options& o) { o.initial = 0x1p127f; }},
      {"initial", [](loss_scaler_options& o) { o.initial = NAN; }},
      {"growth", [](loss_scaler_options& o) { o.growth = 0.5; }},
      {"growth", [](loss_scaler_options& o) { o.growth = HUGE_VAL; }},
      {"backoff", [](loss_scaler_options& o) { o.backoff = 0; }},
      {"backoff", [](loss_scaler_options& o) { o.backoff = 1.5; }},
      {"interval", [](loss_scaler_options& o) { o.interval = 0; }},
      {"hysteresis", [](loss_scaler_options& o) { o.hysteresis = 0; }},
      {"least", [](loss_scaler_options& o) { o.least = 0x1p-127f; }},
      {"least", [](loss_scaler_options& o) { o.least = NAN; }},
      {"most", [](loss_scaler_options& o) { o.most = HUGE_VALF; }},
  };
  for (auto const& r : all) {
    loss_scaler_options options;
    r.spoil(options);
    test::expect_refusal<memfit::hyperparameter_error>(
        [&] { loss_scaler(memfit::host{1}, options); }, {"loss_scaler", r.name});
  }
}

TEST(loss_scaler, refuses_a_state_that_no_scaler_has_and_keeps_its_own) {
  loss_scaler scaler(memfit::host{1});
  window(scaler, true);
  auto const good = scaler.state_sync();
  for (auto [scale, clean, tolerance, skipped] : {std::tuple{NAN, 0, 1, 0},
                                                  {0.0f, 0, 1, 0},
                                                  {HUGE_VALF, 0, 1, 0},
                                                  {-1.0f, 0, 1, 0},
                                                  {1.0f, -1, 1, 0},
                                                  {1.0f, 0, 2, 0},
                                                  {1.0f, 0, -1, 0},
                                                  {1.0f, 0, 1, -1}})
    test::expect_refusal<memfit::hyperparameter_error>(
        [&, s = scale, c = clean, t = tolerance, n = skipped] {
          scaler.load({{}, s, c, t, n});
        },
        {"loss_scaler"});
  EXPECT_EQ(scaler.value_sync(), good.scale);
  EXPECT_EQ(scaler.skipped_sync(), 1);
}

}  // namespace
