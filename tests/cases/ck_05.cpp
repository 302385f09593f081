// CK-05: a checkpointed segment gave the gradient of its input only, not of its weights. Here: the
// given chain, in which two segments share a weight, in float and double, under every schedule.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/checkpoint/plan.hpp"
#include "memfit/checkpoint/run.hpp"
#include "memfit/exec/host.hpp"

namespace {

namespace plan = memfit::checkpoint;

/// h = tanh(w1 x), y = (w2 + w1) h.
template <class T>
struct two_segments {
  T w1 = T(0.8), w2 = T(-1.2);
  T d_w1 = 0, d_w2 = 0;

  void forward(std::int64_t stage, void const* in, void* out, plan::context& c) const {
    T const x = *static_cast<T const*>(in);
    T const y = stage == 0 ? std::tanh(w1 * x) : (w2 + w1) * x;
    if (c.saves()) *c.saved.take<T>(1) = y;
    if (out != nullptr) *static_cast<T*>(out) = y;
  }
  void backward(std::int64_t stage, void const* in, void const*, void* out_gradient,
                void* in_gradient, plan::context& c) {
    T const x = *static_cast<T const*>(in), dy = *static_cast<T*>(out_gradient);
    T const y = *c.saved.take<T>(1);
    T const slope = stage == 0 ? 1 - y * y : T(1);
    d_w1 += dy * slope * x;
    if (stage == 1) d_w2 += dy * x;
    *static_cast<T*>(in_gradient) = dy * slope * (stage == 0 ? w1 : w2 + w1);
  }
};

template <class T>
struct found {
  T y, d_w1, d_w2, d_x;
  bool operator==(found const&) const = default;
};

/// Gradients are added to what `before` left in them.
template <class T>
found<T> train(plan::chain const& stages, plan::schedule const& schedule, T before) {
  two_segments<T> model;
  model.d_w1 = model.d_w2 = before;
  memfit::checkpointed run{memfit::host{1}, stages, schedule};
  T const x = T(0.5);
  T d_x = 0;
  run.forward(model, &x);
  T const y = *static_cast<T const*>(run.output());
  *static_cast<T*>(run.output_gradient()) = y;  // L = y² / 2
  run.backward(model, &d_x);
  return {y, model.d_w1, model.d_w2, d_x};
}

template <class T>
void expect_all_gradients(double tolerance) {
  auto const bytes = static_cast<std::int64_t>(sizeof(T));
  plan::chain const stages(
      2, {.output = bytes, .gradient = bytes, .forward = 1, .variants = {{bytes, 1, 1, 1}}});
  auto const first = train<T>(stages, plan::keep_all(stages), 0);
  std::vector<plan::schedule> all{plan::keep_all(stages), plan::every(stages, 1),
                                  plan::recompute_all(stages), plan::revolve(stages, 2)};
  for (auto const& s : plan::trade(stages, 4)) all.push_back(s);
  for (auto const& schedule : all) {
    auto const now = train<T>(stages, schedule, 0);
    EXPECT_TRUE(now == first);
    EXPECT_NEAR(static_cast<double>(now.y), -0.151979585, tolerance);
    EXPECT_NEAR(static_cast<double>(now.d_w1), -0.0317365601, tolerance);
    EXPECT_NEAR(static_cast<double>(now.d_w2), -0.0577444856, tolerance);
    EXPECT_NEAR(static_cast<double>(now.d_x), 0.0416126808, tolerance);
    auto const added = train<T>(stages, schedule, T(2));
    EXPECT_NEAR(static_cast<double>(added.d_w1), 2 - 0.0317365601, 1e-6);
    EXPECT_NEAR(static_cast<double>(added.d_w2), 2 - 0.0577444856, 1e-6);
  }
}

TEST(CK_05, shared_and_unshared_weights_have_their_gradients_in_double) {
  expect_all_gradients<double>(1e-9);
}

TEST(CK_05, and_in_float) {
  expect_all_gradients<float>(1e-7);
}

}  // namespace
