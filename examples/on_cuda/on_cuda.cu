// Training on a CUDA device with 8-bit AdamW: tensors of the program's own in device memory, one
// stream, and nothing that waits for the device before the end.
#include <memfit/memfit.cuh>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("skipped: no CUDA device answers: %s\n", cudaGetErrorString(error));
  std::exit(77);
}

// What a program's own device tensor might be: memfit knows nothing of it.
class gpu_tensor {
 public:
  gpu_tensor(std::string name, std::int64_t count) : name_(std::move(name)), count_(count) {
    check(cudaMalloc(&data_, static_cast<std::size_t>(count) * sizeof(float)));
    check(cudaMemset(data_, 0, static_cast<std::size_t>(count) * sizeof(float)));
  }
  gpu_tensor(gpu_tensor&& other) noexcept
      : name_(std::move(other.name_)),
        count_(other.count_),
        data_(std::exchange(other.data_, nullptr)) {}
  ~gpu_tensor() { cudaFree(data_); }
  std::string const& name() const { return name_; }
  std::int64_t count() const { return count_; }
  float* data() const { return data_; }

 private:
  std::string name_;
  std::int64_t count_;
  float* data_ = nullptr;
};

template <>
struct memfit::tensor_traits<gpu_tensor> {
  static tensor_ref<float> ref(gpu_tensor& t) { return {t.data(), t.count(), t.name()}; }
};

// The gradient of half the squared distance to the target.
__global__ static void away_from(float target, float const* x, float* gradient, std::int64_t n) {
  auto const i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) gradient[i] = x[i] - target;
}

static void backward(cudaStream_t stream, std::vector<gpu_tensor> const& model, float target,
                     std::vector<gpu_tensor> const& grads) {
  for (std::size_t t = 0; t < model.size(); ++t) {
    auto const n = model[t].count();
    auto const blocks = static_cast<unsigned>((n + 255) / 256);
    away_from<<<blocks, 256, 0, stream>>>(target, model[t].data(), grads[t].data(), n);
  }
}

// The largest distance to the target; waits for the stream.
static float distance(cudaStream_t stream, gpu_tensor const& t, float target) {
  std::vector<float> values(static_cast<std::size_t>(t.count()));
  check(cudaMemcpyAsync(values.data(), t.data(), values.size() * sizeof(float),
                        cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  float most = 0;
  for (float x : values) most = std::max(most, std::abs(x - target));
  return most;
}

int main() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<gpu_tensor> model, grads;
  for (auto* tensors : {&model, &grads}) {
    tensors->emplace_back("colour", 120 * 67);
    tensors->emplace_back("opacity", 33 * 5);
  }

  // example-begin training
  memfit::cuda exec{stream};  // every call is ordered on this stream, and waits for nothing
  memfit::optimizer<memfit::adamw, memfit::float8> opt{exec, {.lr = 1e-2}, model};
  for (int step = 0; step < 100; ++step) {
    backward(stream, model, 0.5f, grads);  // yours
    opt.step(grads);                       // one pass over all tensors, however many
  }
  // example-end training

  // example-begin graph
  cudaGraph_t graph;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  backward(stream, model, 0.5f, grads);
  opt.step(grads);  // counts its steps on the device, so that a replay is the next step
  cudaStreamEndCapture(stream, &graph);
  // example-end graph

  cudaGraphExec_t replay = nullptr;
  check(cudaGraphInstantiate(&replay, graph, 0));
  for (int step = 0; step < 100; ++step) check(cudaGraphLaunch(replay, stream));

  float const colour = distance(stream, model[0], 0.5f), opacity = distance(stream, model[1], 0.5f);
  std::printf("after %lld steps %.4f and %.4f from the target\n%s",
              static_cast<long long>(opt.steps_sync(0)), static_cast<double>(colour),
              static_cast<double>(opacity), opt.describe().text().c_str());
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  return opt.steps_sync(0) == 200 && colour < 0.02f && opacity < 0.02f ? 0 : 1;
}
