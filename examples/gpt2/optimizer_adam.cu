#include <memfit/memfit.cuh>

#include "budgeted.hpp"
#include "grouped_optimizer.hpp"

namespace gpt2 {

GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::adam, float)
GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::adam, bf16)
GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::adam, fp16)

}  // namespace gpt2
