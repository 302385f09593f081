// The order of calls in a window: what is out of order is refused before anything changes.
#include <gtest/gtest.h>

#include <vector>

#include "memfit/clip.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/gradients.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/scaler.hpp"
#include "memfit/step.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::order_error;

class loss_scaler_order : public testing::Test {
 protected:
  using tensors = std::vector<std::vector<float>>;
  memfit::host exec{1};
  tensors parameters{{1, 2}}, gradients{{65536, 65536}};
  memfit::optimizer<memfit::sgd, memfit::fp32> optimizer{exec, memfit::sgd{.lr = 1}, parameters};
  memfit::global_norm norm{exec, parameters}, other_norm{exec, parameters};
  memfit::loss_scaler scaler{exec};

  void refused(std::initializer_list<std::string_view> parts, auto const& call) {
    auto const before = parameters;
    auto const scale = scaler.state_sync();
    test::expect_refusal<order_error>(call, parts);
    EXPECT_EQ(parameters, before);
    EXPECT_EQ(scaler.value_sync(), scale.scale);
    EXPECT_EQ(scaler.state_sync().clean, scale.clean);
  }
};

TEST_F(loss_scaler_order, unscaling_twice) {
  auto const g = scaler.unscale(norm(gradients));
  refused({"unscale", "gate 0"}, [&] { scaler.unscale(norm(gradients)); });
  optimizer.step(gradients, g);
  EXPECT_EQ(parameters[0], (std::vector<float>{0, 1})) << "the refused call left the gate alone";
  scaler.update(g);
  scaler.unscale(norm(gradients));
}

TEST_F(loss_scaler_order, update_without_unscale) {
  refused({"update", "nothing was unscaled"}, [&] { scaler.update(); });
}

TEST_F(loss_scaler_order, update_without_the_step_of_every_optimizer) {
  auto const g = scaler.unscale(norm(gradients));
  refused({"update", "gate 0 of 1"}, [&] { scaler.update(g); });
  optimizer.step(gradients, g);
  auto const second = scaler.unscale(other_norm(gradients));
  refused({"update", "gate 1 of 2"}, [&] { scaler.update(g); });
  optimizer.step(gradients, second);
  scaler.update(g);
}

TEST_F(loss_scaler_order, a_gate_of_an_earlier_window) {
  auto const old = scaler.unscale(norm(gradients));
  optimizer.step(gradients, old);
  scaler.update(old);
  memfit::norm_clipper clipper(exec);
  refused({"optimizer::step", "earlier window"}, [&] { optimizer.step(gradients, old); });
  refused({"step_one", "earlier window"}, [&] { optimizer.step_one(0, gradients[0], old); });
  refused({"step", "earlier window"}, [&] {
    memfit::step<memfit::fp32>(exec, memfit::sgd{.lr = 1}, 1, parameters[0], gradients[0], {}, old);
  });
  refused({"limit", "earlier window"}, [&] { clipper.limit(norm(gradients), old, 1); });
  auto const fresh = scaler.unscale(norm(gradients));
  refused({"update", "earlier window"}, [&] { scaler.update(old); });
  refused({"optimizer::step", "earlier window"}, [&] { optimizer.step(gradients, old); });
  optimizer.step(gradients, fresh);
  scaler.update(fresh);
}

TEST_F(loss_scaler_order, loading_between_unscale_and_update) {
  auto const state = scaler.state_sync();
  auto const g = scaler.unscale(norm(gradients));
  refused({"load", "between"}, [&] { scaler.load(state); });
  g.mark_stepped();
  scaler.update();
  scaler.load(state);
}

TEST_F(loss_scaler_order, a_step_that_is_refused_has_not_used_its_gate) {
  auto const g = scaler.unscale(norm(gradients));
  EXPECT_THROW(optimizer.step(tensors{{1}}, g), memfit::argument_error);
  refused({"no step has used"}, [&] { scaler.update(g); });
}

TEST_F(loss_scaler_order, more_gates_than_there_are) {
  std::vector<double> norms(memfit::loss_scaler::most_gates + 1, 1.0);
  for (std::size_t i = 0; i + 1 < norms.size(); ++i) scaler.unscale(&norms[i]).mark_stepped();
  test::expect_refusal<memfit::argument_error>([&] { scaler.unscale(&norms.back()); }, {"64"});
  scaler.update();
  EXPECT_EQ(scaler.state_sync().clean, 1);
}

TEST_F(loss_scaler_order, moving_a_scaler_keeps_its_gates) {
  auto const g = scaler.unscale(norm(gradients));
  auto moved = std::move(scaler);
  optimizer.step(gradients, g);
  moved.update(g);
  EXPECT_EQ(moved.state_sync().clean, 1);
  scaler = memfit::loss_scaler(exec);
}

TEST_F(loss_scaler_order, null_norms) {
  test::expect_refusal<memfit::argument_error>(
      [&] { scaler.unscale(static_cast<double const*>(nullptr)); }, {"null norm"});
}

}  // namespace
