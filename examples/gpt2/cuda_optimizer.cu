#include "cuda_optimizer.cuh"

#include <memfit/memfit.cuh>

#include "rules.hpp"

namespace gpt2 {

template <class T>
std::unique_ptr<optimizer<T>> make_cuda_optimizer(cudaStream_t stream,
                                                  const optimizer_settings& settings,
                                                  weights<T>& parameters) {
  return make_optimizer_on(memfit::cuda{stream}, settings, parameters);
}

#define GPT2_OPTIMIZER(T)                                     \
  template std::unique_ptr<optimizer<T>> make_cuda_optimizer( \
      cudaStream_t, const optimizer_settings&, weights<T>&);

GPT2_OPTIMIZER(float)
GPT2_OPTIMIZER(bf16)
GPT2_OPTIMIZER(fp16)

}  // namespace gpt2
