#include <memfit/memfit.cuh>

#include "budgeted.hpp"
#include "grouped_optimizer.hpp"

namespace gpt2 {

GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::sgd, float)
GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::sgd, bf16)
GPT2_OPTIMIZER(budgeted<memfit::cuda>, memfit::sgd, fp16)

}  // namespace gpt2
