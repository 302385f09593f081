#include <memfit/memfit.hpp>

#include "budgeted.hpp"
#include "grouped_optimizer.hpp"

namespace gpt2 {

GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::sgd, float)
GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::sgd, bf16)
GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::sgd, fp16)

}  // namespace gpt2
