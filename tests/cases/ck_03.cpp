// CK-03: side effects of a forward happened again in its replay. Here: a running mean and a counter
// that heed the flag are right under every schedule, and the flag is true in replays alone.
#include <gtest/gtest.h>

#include <vector>

#include "memfit/checkpoint/plan.hpp"
#include "memfit/checkpoint/run.hpp"
#include "memfit/exec/host.hpp"

namespace {

namespace plan = memfit::checkpoint;

/// Keeps a running mean of its input per stage, and passes the input on.
struct normalizing {
  std::vector<double> running, careless;
  std::vector<int> counter, calls;

  explicit normalizing(std::size_t stages)
      : running(stages), careless(stages), counter(stages), calls(stages) {}

  void forward(std::int64_t stage, void const* in, void* out, plan::context& c) {
    auto const i = static_cast<std::size_t>(stage);
    double const mean = *static_cast<double const*>(in);
    if (!c.replay) {
      running[i] = 0.9 * running[i] + 0.1 * mean;
      ++counter[i];
    }
    careless[i] = 0.9 * careless[i] + 0.1 * mean;
    ++calls[i];
    if (out != nullptr) *static_cast<double*>(out) = mean;
  }
  void backward(std::int64_t, void const*, void const*, void* out_gradient, void* in_gradient,
                plan::context&) const {
    *static_cast<double*>(in_gradient) = *static_cast<double*>(out_gradient);
  }
};

normalizing train(plan::chain const& stages, plan::schedule const& schedule, int steps) {
  normalizing model(stages.size());
  memfit::checkpointed run{memfit::host{1}, stages, schedule};
  for (int step = 0; step < steps; ++step) {
    double const batch = 1;
    double gradient = 0;
    run.forward(model, &batch);
    *static_cast<double*>(run.output_gradient()) = 1;
    run.backward(model, &gradient);
    EXPECT_EQ(gradient, 1);
  }
  return model;
}

plan::chain chain_of(std::size_t stages) {
  return plan::chain(stages,
                     {.output = 8, .gradient = 8, .forward = 1, .variants = {{8, 1, 1, 1}}});
}

void expect_one_update_per_step(normalizing const& model) {
  for (std::size_t i = 0; i < model.running.size(); ++i) {
    EXPECT_NEAR(model.running[i], 0.271, 1e-12);
    EXPECT_EQ(model.counter[i], 3);
  }
}

TEST(CK_03, two_segments_update_a_running_mean_once_per_step) {
  auto const stages = chain_of(2);
  auto const model = train(stages, plan::every(stages, 1), 3);
  expect_one_update_per_step(model);
  EXPECT_EQ(model.calls[0], 6);
  EXPECT_NEAR(model.careless[0], 0.468559, 1e-9);
}

TEST(CK_03, so_does_every_schedule_however_often_it_replays) {
  for (std::size_t n : {1u, 2u, 5u, 16u}) {
    auto const stages = chain_of(n);
    std::vector<plan::schedule> all{plan::keep_all(stages), plan::sqrt_n(stages),
                                    plan::recompute_all(stages), plan::revolve(stages, 2),
                                    plan::revolve(stages, 3)};
    for (auto const& s : plan::trade(stages, 5)) all.push_back(s);
    for (auto const& schedule : all) {
      auto const model = train(stages, schedule, 3);
      expect_one_update_per_step(model);
      std::int64_t calls = 0;
      for (int c : model.calls) calls += c;
      EXPECT_EQ(calls, 3 * schedule.forwards);
    }
  }
}

}  // namespace
