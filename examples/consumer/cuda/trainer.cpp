#include <cuda_runtime_api.h>

#include <cstdio>

#include "made.hpp"

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device answers");
    return 0;
  }
  constexpr std::int64_t n = 10'000;
  float *parameter = nullptr, *gradient = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&parameter), n * sizeof(float));
  cudaMalloc(reinterpret_cast<void**>(&gradient), n * sizeof(float));
  cudaMemset(parameter, 0, n * sizeof(float));
  cudaMemset(gradient, 0, n * sizeof(float));
  auto opt = make_optimizer(memfit::cuda{}, {{parameter, n, "w"}});
  for (int step = 0; step < 3; ++step) opt.step(tensors{{gradient, n}});
  std::printf("%lld steps\n%s", static_cast<long long>(opt.steps_sync(0)),
              opt.describe().text().c_str());
  cudaFree(parameter);
  cudaFree(gradient);
  return 0;
}
