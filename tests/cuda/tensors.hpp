// Tensors that exist on the host and on the device, and captured work: what tests compare.
// Used by the tests of the optimizer and of captured graphs on CUDA.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/device.hpp"
#include "memfit/core/tensor.hpp"
#include "support/inputs.hpp"

namespace test {

using refs = std::vector<memfit::tensor_ref<float>>;

inline std::vector<float> normal_input(std::int64_t n, std::uint64_t seed) {
  return make_input(kind::normal, n, seed);
}

/// Tensors t0, t1 … of the same values on both sides.
struct tensors {
  std::vector<std::vector<float>> host;
  std::vector<on_device<float>> device;

  tensors(std::vector<std::int64_t> const& counts, std::uint64_t seed) {
    for (auto n : counts) {
      names.push_back(std::string("t").append(std::to_string(host.size())));
      host.push_back(normal_input(n, seed++));
    }
    for (auto const& h : host) device.emplace_back(h);
  }
  refs on_host() {
    refs r;
    for (auto& t : host) r.push_back({t.data(), std::ssize(t), names[r.size()]});
    return r;
  }
  refs on_device_side() const {
    refs r;
    for (auto const& t : device) r.push_back({t.data(), t.count(), names[r.size()]});
    return r;
  }
  void set(std::uint64_t seed) {
    for (std::size_t i = 0; i < host.size(); ++i) {
      host[i] = normal_input(std::ssize(host[i]), seed + i);
      device[i].set(host[i]);
    }
  }
  void expect_same() const {
    for (std::size_t i = 0; i < host.size(); ++i) {
      EXPECT_EQ(device[i].get(), host[i]) << "tensor " << i;
      EXPECT_TRUE(device[i].intact()) << "tensor " << i;
    }
  }

 private:
  std::vector<std::string> names;
};

template <class A, class B>
void expect_same_states(A const& a, B const& b, int slots = 2) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (int s = 0; s < slots; ++s) EXPECT_EQ(a.moment_sync(i, s), b.moment_sync(i, s)) << i;
    EXPECT_EQ(a.steps_sync(i), b.steps_sync(i)) << i;
  }
  EXPECT_EQ(a.nonfinite_sync(), b.nonfinite_sync());
}

/// Work captured in a stream, to be replayed.
class graph {
 public:
  template <class Work>
  graph(cudaStream_t s, Work const& work) {
    require(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    work();
    cudaGraph_t g = nullptr;
    require(cudaStreamEndCapture(s, &g));
    require(cudaGraphInstantiate(&exec_, g, 0));
    require(cudaGraphDestroy(g));
  }
  graph(graph const&) = delete;
  graph& operator=(graph const&) = delete;
  ~graph() { cudaGraphExecDestroy(exec_); }
  void launch(cudaStream_t s) const { require(cudaGraphLaunch(exec_, s)); }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace test
