// The optimizer of this program: made where nvcc compiles, stepped where it does not.
// Used by trainer.cpp; made.cu defines it.
#pragma once

#include <memfit/exec/cuda.hpp>
#include <memfit/memfit.hpp>

#include <vector>

using optimizer = memfit::optimizer<memfit::adamw, memfit::float8>;
using tensors = std::vector<memfit::tensor_ref<float>>;

optimizer make_optimizer(memfit::cuda exec, tensors const& parameters);
