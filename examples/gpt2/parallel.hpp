// One parallel loop over a range of items, split into one contiguous part per thread.
// Used by the kernels of the GPT-2 example; items are independent, so no result depends on the
// split.
#pragma once

#include <functional>

#include "tensor.hpp"

namespace gpt2 {

void parallel(int threads, index count, const std::function<void(index begin, index end)>& body);

// In the body of such a loop: the number, from 0, of the thread that runs it.
int this_thread();

}  // namespace gpt2
