#include "cuda_optimizer.cuh"

#include <memfit/memfit.cuh>

#include "rules.hpp"

namespace gpt2 {

template <class T>
std::unique_ptr<optimizer<T>> make_cuda_optimizer(const budgeted<memfit::cuda>& exec,
                                                  const optimizer_settings& settings,
                                                  weights<T>& parameters) {
  return make_optimizer_on(exec, settings, parameters);
}

#define GPT2_OPTIMIZER(T)                                     \
  template std::unique_ptr<optimizer<T>> make_cuda_optimizer( \
      const budgeted<memfit::cuda>&, const optimizer_settings&, weights<T>&);

GPT2_OPTIMIZER(float)
GPT2_OPTIMIZER(bf16)
GPT2_OPTIMIZER(fp16)

}  // namespace gpt2
