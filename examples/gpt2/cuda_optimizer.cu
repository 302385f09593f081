#include "cuda_optimizer.cuh"

#include <memfit/memfit.cuh>

#include "rules.hpp"

namespace gpt2 {

std::unique_ptr<optimizer> make_cuda_optimizer(cudaStream_t stream,
                                               const optimizer_settings& settings,
                                               weights<float>& parameters) {
  return make_optimizer_on(memfit::cuda{stream}, settings, parameters);
}

}  // namespace gpt2
