// Checkpointed passes on CUDA: captured in a graph, their replays have the host's bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cuda/tensors.hpp"
#include "memfit/checkpoint/plan.hpp"
#include "memfit/checkpoint/run.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/memfit.cuh"

namespace {

namespace plan = memfit::checkpoint;

constexpr std::int64_t stages = 7, width = 300;

/// y = mask · p · x, element by element.
struct layer {
  float const* p;
  memfit::noise_key key;

  MEMFIT_HD float factor(std::int64_t i) const {
    return memfit::noise(key, static_cast<std::uint32_t>(i)) % 4 != 0 ? 1.25f * p[i] : 0.0f;
  }
  MEMFIT_HD void forward(std::int64_t i, float const* x, float* y, float* saved) const {
    if (saved != nullptr) saved[i] = factor(i);
    if (y != nullptr) y[i] = factor(i) * x[i];
  }
  MEMFIT_HD void backward(std::int64_t i, float const* x, float const* saved, float const* dy,
                          float* dx, float* dp) const {
    dp[i] = memfit::fma(dy[i] * (saved[i] != 0 ? 1.25f : 0.0f), x[i], dp[i]);
    dx[i] = saved[i] * dy[i];
  }
};

__global__ void forward_kernel(layer l, float const* x, float* y, float* saved) {
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) l.forward(i, x, y, saved);
}
__global__ void backward_kernel(layer l, float const* x, float const* saved, float const* dy,
                                float* dx, float* dp) {
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
    l.backward(i, x, saved, dy, dx, dp);
}

/// Layers on the host, or on a stream where there is one.
struct model {
  float const* p;
  float* dp;
  cudaStream_t stream = nullptr;

  void forward(std::int64_t stage, void const* in, void* out, plan::context& c) const {
    layer const l{p + stage * width, c.noise};
    auto const* const x = static_cast<float const*>(in);
    auto* const y = static_cast<float*>(out);
    auto* const saved = c.saves() ? c.saved.take<float>(width) : nullptr;
    if (stream != nullptr)
      forward_kernel<<<1, 128, 0, stream>>>(l, x, y, saved);
    else
      for (std::int64_t i = 0; i < width; ++i) l.forward(i, x, y, saved);
  }
  void backward(std::int64_t stage, void const* in, void const*, void* out_gradient,
                void* in_gradient, plan::context& c) const {
    layer const l{p + stage * width, c.noise};
    auto const* const x = static_cast<float const*>(in);
    auto const* const dy = static_cast<float const*>(out_gradient);
    auto* const dx = static_cast<float*>(in_gradient);
    auto const* const saved = c.saved.take<float>(width);
    if (stream != nullptr)
      backward_kernel<<<1, 128, 0, stream>>>(l, x, saved, dy, dx, dp + stage * width);
    else
      for (std::int64_t i = 0; i < width; ++i) l.backward(i, x, saved, dy, dx, dp + stage * width);
  }
};

template <class E>
void step(E const& exec, memfit::checkpointed<E>& run, model const& m, float const* in, float* dx) {
  run.forward(m, in, {.seed = 3, .step = 1});
  exec.copy(run.output_gradient(), run.output(), width * 4);
  run.backward(m, dx);
}

plan::chain chain_of_layers() {
  return plan::rounded(plan::chain(stages, {.output = width * 4,
                                            .gradient = width * 4,
                                            .forward = 100,
                                            .variants = {{.saved = width * 4, .forward = 100}}}));
}

TEST(cuda_checkpoint, graphs_of_every_schedule_have_the_bits_of_the_host) {
  auto const chain = chain_of_layers();
  test::tensors parameters({stages * width}, 1), input({width}, 2);
  for (auto const& schedule : {plan::keep_all(chain), plan::sqrt_n(chain), plan::revolve(chain, 2),
                               plan::within(chain, plan::least_bytes(chain))}) {
    std::vector<float> dx(width), dp(stages * width);
    memfit::checkpointed on_host{memfit::host{1}, chain, schedule};
    test::stream s;
    memfit::cuda const exec{s};
    test::on_device<float> dx_there(width), dp_there(dp);
    memfit::checkpointed on_device{exec, chain, schedule};
    EXPECT_EQ(on_device.arena_bytes(), schedule.peak);
    model const there{parameters.device[0].data(), dp_there.data(), s};
    test::graph const captured(
        s, [&] { step(exec, on_device, there, input.device[0].data(), dx_there.data()); });
    for (int replay = 0; replay < 3; ++replay) {
      captured.launch(s);
      step(memfit::host{1}, on_host, {parameters.host[0].data(), dp.data()}, input.host[0].data(),
           dx.data());
    }
    s.wait();
    EXPECT_EQ(dx_there.get(), dx);
    EXPECT_EQ(dp_there.get(), dp);
    EXPECT_TRUE(dx_there.intact() && dp_there.intact());
  }
}

TEST(cuda_checkpoint, activations_in_the_second_place_come_back_and_are_refused_in_a_capture) {
  auto const chain = chain_of_layers();
  test::tensors parameters({stages * width}, 1), input({width}, 2);
  auto const schedule =
      plan::within(chain, plan::least_bytes(chain), stages * chain[0].output, 1 << 20);
  EXPECT_GT(schedule.second_peak, 0);
  std::vector<float> dx(width), dp(stages * width);
  memfit::checkpointed on_host{memfit::host{1}, chain, schedule};
  step(memfit::host{1}, on_host, {parameters.host[0].data(), dp.data()}, input.host[0].data(),
       dx.data());
  test::stream s;
  memfit::cuda const exec{s};
  test::on_device<float> dx_there(width), dp_there(std::vector<float>(stages * width));
  memfit::checkpointed run{exec, chain, schedule};
  model const there{parameters.device[0].data(), dp_there.data(), s};
  test::require(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  EXPECT_THROW(run.forward(there, input.device[0].data()), memfit::device_error);
  cudaGraph_t g = nullptr;
  cudaStreamEndCapture(s, &g);
  cudaGraphDestroy(g);
  cudaGetLastError();
  step(exec, run, there, input.device[0].data(), dx_there.data());
  s.wait();
  EXPECT_EQ(dx_there.get(), dx);
  EXPECT_EQ(dp_there.get(), dp);
}

}  // namespace
