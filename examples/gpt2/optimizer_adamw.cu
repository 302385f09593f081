#include <memfit/memfit.cuh>

#include "budgeted.hpp"
#include "grouped_optimizer.hpp"

namespace gpt2 {

GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::adamw, float)
GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::adamw, bf16)
GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::adamw, fp16)

}  // namespace gpt2
