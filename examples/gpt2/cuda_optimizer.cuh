// memfit's optimizers on a CUDA stream, behind the common face.
// Used by the CUDA device of the GPT-2 example; optimizer_<rule>.cu hold the instantiations.
#pragma once

#include <memfit/exec/cuda.hpp>

#include "budgeted.hpp"
#include "optimizer.hpp"

namespace gpt2 {

template <class T>
std::unique_ptr<optimizer<T>> make_cuda_optimizer(const budgeted<memfit::cuda>& exec,
                                                  const optimizer_settings& settings,
                                                  weights<T>& parameters);

}  // namespace gpt2
