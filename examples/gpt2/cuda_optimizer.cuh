// memfit's optimizers on a CUDA stream, behind the common face.
// Used by the CUDA device of the GPT-2 example; optimizer_<rule>.cu hold the instantiations.
#pragma once

#include <cuda_runtime_api.h>

#include "optimizer.hpp"

namespace gpt2 {

std::unique_ptr<optimizer> make_cuda_optimizer(cudaStream_t stream,
                                               const optimizer_settings& settings,
                                               weights<float>& parameters);

}  // namespace gpt2
