// The state formats and the parameter columns that memfit has, each in one list. Used by tests that
// want something of every one; new ones are added here.
#pragma once

#include "memfit/registry.hpp"

namespace test {

using all_formats =
    memfit::formats<memfit::fp32, memfit::bf16, memfit::fp16, memfit::dynamic8, memfit::float8,
                    memfit::linear8, memfit::root8, memfit::companded8, memfit::packed4,
                    memfit::stochastic<memfit::float8>>;
using all_columns =
    memfit::columns<memfit::fp32, memfit::bf16, memfit::fp16, memfit::stochastic<memfit::bf16>,
                    memfit::stochastic<memfit::fp16>, memfit::split<memfit::bf16>,
                    memfit::split<memfit::fp16>, memfit::corrected<memfit::bf16>,
                    memfit::corrected<memfit::fp16>,
                    memfit::stochastic<memfit::corrected<memfit::bf16>>,
                    memfit::master<memfit::bf16>, memfit::master<memfit::fp16>>;

}  // namespace test
