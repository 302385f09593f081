#include <memfit/memfit.cuh>

#include "budgeted.hpp"
#include "grouped_optimizer.hpp"

namespace gpt2 {

GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::momentum, float)
GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::momentum, bf16)
GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::momentum, fp16)

}  // namespace gpt2
