// The state formats that memfit has, in one list. Used by tests that want something of every
// format; a new one is added here.
#pragma once

#include "memfit/registry.hpp"

namespace test {

using all_formats = memfit::formats<memfit::fp32, memfit::bf16, memfit::fp16, memfit::dynamic8,
                                    memfit::float8, memfit::linear8>;

}  // namespace test
