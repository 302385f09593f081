#include <memfit/memfit.hpp>

#include "budgeted.hpp"
#include "grouped_optimizer.hpp"

namespace gpt2 {

GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::momentum, float)
GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::momentum, bf16)
GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::momentum, fp16)

}  // namespace gpt2
