// How fast are the CUDA step and the quantizers, against a copy within the device that moves the
// same bytes? Times are those of the device; the argument of each benchmark is its elements.
// The environment variable MEMFIT_BENCH_N=<elements> replaces all sizes.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cases.hpp"
#include "columns.cuh"
#include "device.cuh"
#include "memfit/memfit.cuh"

namespace {

using memfit::tensor_ref;
using memfit::bench::coded, memfit::bench::expect_success, memfit::bench::gradients,
    memfit::bench::parameters;

constexpr memfit::adamw rule{.lr = 1e-6, .weight_decay = 0.01};

template <class Format, class Param>
class stepping {
  using column = memfit::column_for<Param>;

 public:
  static constexpr double bytes = memfit::bench::step_bytes<Format, column>();
  stepping(memfit::cuda const& exec, std::int64_t n)
      : exec_(exec), parameter_(exec, n), gradient_(exec, n), first_(exec, n), second_(exec, n) {
    item_.visible = parameter_.visible.data();
    item_.kept = parameter_.kept.data();
    item_.gradient = gradient_.get();
    item_.count = n;
    item_.moments[0] = first_.ref();
    item_.moments[1] = second_.ref();
  }
  void operator()() {
    item_.constants = rule.at(++step_);
    exec_.step<memfit::adamw, Format, column>(item_, {});
  }

 private:
  memfit::cuda exec_;
  parameters<column> parameter_;
  gradients gradient_;
  coded<Format, memfit::range::any> first_;
  coded<Format, memfit::range::non_negative> second_;
  memfit::step_item<memfit::adamw> item_{};
  std::int64_t step_ = 0;
};

template <class Format, memfit::range R>
class quantizing {
 public:
  static constexpr double bytes = memfit::bench::transform_bytes<Format>();
  quantizing(memfit::cuda const& exec, std::int64_t n)
      : exec_(exec), n_(n), in_(exec, n), out_(exec, n) {}
  void operator()() { memfit::quantize<Format, R>(exec_, values(), codes(), scales()); }

 protected:
  tensor_ref<float> values() const { return {in_.get(), n_}; }
  tensor_ref<typename coded<Format, R>::code> codes() const {
    auto* const data = static_cast<typename coded<Format, R>::code*>(out_.codes.data());
    return {data, out_.codes.bytes() / coded<Format, R>::stored::code_size};
  }
  tensor_ref<typename coded<Format, R>::scale> scales() const {
    auto* const data = static_cast<typename coded<Format, R>::scale*>(out_.scales.data());
    return {data, out_.scales.bytes() / coded<Format, R>::stored::scale_size};
  }
  memfit::cuda exec_;

 private:
  std::int64_t n_;
  gradients in_;
  coded<Format, R> out_;
};

template <class Format, memfit::range R>
class dequantizing : quantizing<Format, R> {
 public:
  using quantizing<Format, R>::bytes;
  dequantizing(memfit::cuda const& exec, std::int64_t n) : quantizing<Format, R>(exec, n) {
    quantizing<Format, R>::operator()();
  }
  void operator()() {
    memfit::dequantize<Format, R>(this->exec_, this->codes(), this->scales(), this->values());
  }
};

/// How many elements the tensors of an optimizer have.
struct a_thousand_each {
  static std::int64_t of(std::int64_t) { return 1000; }
};
struct all_in_one {
  static std::int64_t of(std::int64_t n) { return n; }
};

/// Steps of an optimizer, the host's part of the work included where the device waits for it.
template <class Size>
class optimizing {
  using column = memfit::column_for<memfit::fp32>;

 public:
  static constexpr double bytes = memfit::bench::step_bytes<memfit::float8, column>();
  optimizing(memfit::cuda const& exec, std::int64_t n)
      : parameter_(exec, n),
        gradient_(exec, n),
        gradients_(slices(gradient_.get(), n)),
        optimizer_(exec, rule, slices(reinterpret_cast<float*>(parameter_.get()), n),
                   {.min_quantized = 1}) {}
  void operator()() { optimizer_.step(gradients_); }

 private:
  static std::vector<tensor_ref<float>> slices(float* data, std::int64_t n) {
    std::vector<tensor_ref<float>> all;
    for (std::int64_t first = 0; first < n; first += Size::of(n))
      all.push_back({data + first, std::min(Size::of(n), n - first)});
    return all;
  }

  parameters<column> parameter_;
  gradients gradient_;
  std::vector<tensor_ref<float>> gradients_;
  memfit::optimizer<memfit::adamw, memfit::float8> optimizer_;
};

/// The same steps from a captured graph: the device's part alone.
template <class Size>
class replaying {
 public:
  static constexpr double bytes = optimizing<Size>::bytes;
  replaying(memfit::cuda const& exec, std::int64_t n) : stream_(exec.stream()), steps_(exec, n) {
    steps_();  // tells the device of all tensors, once
    cudaGraph_t graph = nullptr;
    expect_success(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "begin capture");
    steps_();
    expect_success(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    expect_success(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
    expect_success(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  replaying(replaying const&) = delete;
  replaying& operator=(replaying const&) = delete;
  ~replaying() { cudaGraphExecDestroy(graph_); }
  void operator()() { expect_success(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  optimizing<Size> steps_;
  cudaGraphExec_t graph_ = nullptr;
};

template <class Work>
void add(std::string const& name, std::vector<std::int64_t> sizes) {
  auto* const b = benchmark::RegisterBenchmark(name.c_str(), memfit::bench::report_calls<Work>);
  b->UseManualTime()->Unit(benchmark::kMillisecond)->ArgName("n");
  if (char const* const n = std::getenv("MEMFIT_BENCH_N")) sizes = {std::atoll(n)};
  for (auto n : sizes) b->Arg(n);
}

void add_all() {
  std::vector<std::int64_t> sizes;
  for (int bits = 20; bits <= 28; bits += 2) sizes.push_back(std::int64_t{1} << bits);
  add<memfit::bench::copying>("copy", sizes);
  memfit::bench::for_each_step([&]<class Format, class Param>(std::string const& name) {
    add<stepping<Format, Param>>(name, sizes);
  });
  memfit::bench::for_each_quantizer([&]<class Format, memfit::range R>(std::string const& name) {
    add<quantizing<Format, R>>("quantize/" + name, sizes);
    add<dequantizing<Format, R>>("dequantize/" + name, sizes);
  });
  std::vector<std::int64_t> const ten_million{10'000'000};
  add<optimizing<all_in_one>>("step/adamw/float8/one", ten_million);
  add<optimizing<a_thousand_each>>("step/adamw/float8/many", ten_million);
  add<replaying<a_thousand_each>>("step/adamw/float8/many_replayed", ten_million);
}

std::string description_of_device() {
  cudaDeviceProp p{};
  expect_success(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
  return std::string(p.name) + ", compute capability " + std::to_string(p.major) + "." +
         std::to_string(p.minor) + ", " + std::to_string(p.multiProcessorCount) +
         " multiprocessors";
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  int devices = 0;
  auto const found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "bench_step_cuda: no CUDA device answers: %s\n",
                 cudaGetErrorString(found));
    return 2;
  }
  benchmark::AddCustomContext("device", description_of_device());
  add_all();
  benchmark::RunSpecifiedBenchmarks();
  return memfit::bench::any_failed() ? 1 : 0;
}
