// Steps and norms captured in CUDA graphs: replays are steps, whatever runs between them.
// A graph takes along what it needs, and leaves nothing behind that a later step relies on.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "cuda/tensors.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/memfit.cuh"
#include "support/refusal.hpp"

namespace {

using optimizer8 = memfit::optimizer<memfit::adamw, memfit::float8>;
using test::expect_same_states, test::graph, test::tensors;

constexpr memfit::adamw rule{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1};
std::vector<std::int64_t> const some{5000, 300, 0, 4096, 1, 4095};

TEST(cuda_graph, a_hundred_replays_are_a_hundred_steps) {
  tensors p(some, 1), g(some, 10);
  test::stream s;
  memfit::cuda const exec{s};
  optimizer8 host(memfit::host{1}, rule, p.on_host()), device(exec, rule, p.on_device_side());
  test::on_device<float> const multiplier(std::vector<float>{0.5f});
  test::on_device<std::uint32_t> skip(std::vector<std::uint32_t>{0});
  test::on_device<memfit::adamw> rule_there(std::vector<memfit::adamw>{rule});
  device.rule_from(rule_there.data());
  graph const step(s, [&] {
    device.step(g.on_device_side(), {.multiplier = multiplier.data(), .skip = skip.data()});
  });
  float const half = 0.5f;
  for (int i = 0; i < 100; ++i) {
    bool const skipped = i % 10 == 7;
    skip.set(std::vector<std::uint32_t>{skipped ? 1u : 0u});
    host.rule().lr = 0.01 / (i + 1);
    auto now = rule;
    now.lr = 0.01 / (i + 1);
    rule_there.set(std::vector<memfit::adamw>{now});
    step.launch(s);
    s.wait();
    if (!skipped) host.step(g.on_host(), {.multiplier = &half});
  }
  EXPECT_EQ(device.steps_sync(0), 90);
  p.expect_same();
  expect_same_states(host, device);
}

TEST(cuda_graph, a_step_that_would_allocate_is_refused_in_a_capture_and_works_after_it) {
  tensors p({5000}, 1);
  test::stream s;
  optimizer8 opt(memfit::cuda{s}, rule);
  test::require(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  test::expect_refusal<memfit::memory_error>([&] { opt.add(p.on_device_side()[0]); },
                                             {"optimizer::add", "t0", "5000", "cudaMalloc"});
  cudaGraph_t g = nullptr;
  cudaStreamEndCapture(s, &g);
  cudaGetLastError();
  EXPECT_EQ(opt.size(), 0u);
  EXPECT_EQ(opt.add(p.on_device_side()[0]), 0u);
}

/// An optimizer on either side, two sets of gradients, and a stream to capture.
class mixed : public testing::Test {
 protected:
  tensors p{some, 1}, a{some, 10}, b{some, 20};
  test::stream s;
  optimizer8 host{memfit::host{1}, rule, p.on_host()};
  optimizer8 device{memfit::cuda{s}, rule, p.on_device_side()};

  void eager(tensors& g) {
    device.step(g.on_device_side());
    host.step(g.on_host());
  }
  graph capture(tensors const& g) {
    return graph(s, [&] { device.step(g.on_device_side()); });
  }
  void replay(graph const& step, tensors& g) {
    step.launch(s);
    host.step(g.on_host());
  }
  void TearDown() override {
    s.wait();
    p.expect_same();
    expect_same_states(host, device);
  }
};

TEST_F(mixed, a_replay_uses_the_gradients_it_was_captured_with) {
  eager(a);
  auto const step = capture(a);
  eager(b);
  replay(step, a);
  eager(b);
  replay(step, a);
  replay(step, a);
}

TEST_F(mixed, two_graphs_take_turns) {
  eager(a);
  auto const first = capture(a), second = capture(b);
  for (int i = 0; i < 3; ++i) {
    replay(first, a);
    replay(second, b);
  }
}

TEST_F(mixed, the_first_step_is_captured_and_an_eager_one_runs_before_it) {
  auto const step = capture(a);
  eager(b);
  replay(step, a);
  eager(b);
}

TEST_F(mixed, a_graph_that_never_runs_changes_nothing) {
  eager(a);
  { auto const dropped = capture(b); }
  eager(b);
  eager(a);
}

TEST_F(mixed, one_tensor_at_a_time_between_replays) {
  auto const step = capture(a);
  for (std::size_t i = 0; i < some.size(); ++i) {
    device.step_one(i, b.on_device_side()[i]);
    host.step_one(i, b.on_host()[i]);
    replay(step, a);
  }
}

TEST_F(mixed, a_replay_keeps_the_groups_and_the_frozen_tensors_of_its_capture) {
  auto const both = [this](auto const& policy) {
    policy(host);
    policy(device);
  };
  auto const as_captured = [](auto& opt) {
    opt.set_group(0, 1);
    opt.unfreeze("t?");
    opt.freeze(1);
  };
  auto const afterwards = [](auto& opt) {
    opt.set_group(0, 0);
    opt.unfreeze(1);
    opt.freeze("t3");
  };
  both([](auto& opt) { opt.add_group({"t0", "t3"}, [](auto& r) { r.weight_decay = 0.5; }); });
  both(as_captured);
  auto const step = capture(a);
  eager(b);
  both(afterwards);
  eager(b);
  as_captured(host);
  replay(step, a);
  afterwards(host);
  eager(b);
  as_captured(host);
  replay(step, a);
}

TEST(cuda_graph, norms_are_those_of_the_captured_tensors) {
  tensors a(some, 1), b(some, 2);
  test::stream s;
  memfit::global_norm on_host(memfit::host{1}, a.on_host());
  memfit::global_norm on_device(memfit::cuda{s}, a.on_device_side());
  graph const norm(s, [&] { on_device(a.on_device_side()); });
  on_host(b.on_host());
  on_device(b.on_device_side());
  EXPECT_EQ(on_host.value_sync(), on_device.value_sync());
  on_host(a.on_host());
  norm.launch(s);
  EXPECT_EQ(on_host.value_sync(), on_device.value_sync());
  on_host(b.on_host());
  on_device(b.on_device_side());
  EXPECT_EQ(on_host.value_sync(), on_device.value_sync());
}

TEST(cuda_graph, memory_is_refused_in_every_mode_of_capture) {
  tensors p({5000}, 1);
  test::stream s;
  optimizer8 opt(memfit::cuda{s}, rule);
  test::require(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  test::expect_refusal<memfit::memory_error>([&] { opt.add(p.on_device_side()[0]); },
                                             {"optimizer::add", "t0", "5000", "cudaMalloc"});
  cudaGraph_t g = nullptr;
  test::require(cudaStreamEndCapture(s, &g));
  cudaGraphDestroy(g);
  EXPECT_EQ(opt.add(p.on_device_side()[0]), 0u);
}

}  // namespace
