#include <memfit/memfit.hpp>

#include "budgeted.hpp"
#include "grouped_optimizer.hpp"

namespace gpt2 {

GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::adamw, float)
GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::adamw, bf16)
GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::adamw, fp16)

}  // namespace gpt2
