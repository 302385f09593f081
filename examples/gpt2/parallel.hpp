// One parallel loop over a range of items, split into one contiguous part per thread.
// Used by the kernels of the GPT-2 example; items are independent, so no result depends on the
// split.
#pragma once

#include <functional>

#include "tensor.hpp"

namespace gpt2 {

void parallel(int threads, index count, const std::function<void(index begin, index end)>& body);

}  // namespace gpt2
