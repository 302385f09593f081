#include <memfit/memfit.hpp>

#include "budgeted.hpp"
#include "grouped_optimizer.hpp"

namespace gpt2 {

GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::adam, float)
GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::adam, bf16)
GPT2_OPTIMIZER(budgeted<memfit::host>, memfit::adam, fp16)

}  // namespace gpt2
