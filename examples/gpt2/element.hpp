// The types that the network's tensors are stored in, and the one that arithmetic on them uses.
// Used by every part of the GPT-2 example that computes: float, and for less memory bf16 or fp16;
// double for the tests.
#pragma once

#include <memfit/core/types.hpp>

#include <type_traits>

namespace gpt2 {

using memfit::bf16;
using memfit::fp16;

template <class T>
concept narrow = std::is_same_v<T, bf16> || std::is_same_v<T, fp16>;

// Values of 16 bits are for storage alone: statistics, sums and losses are never kept in them.
template <class T>
using wide = std::conditional_t<narrow<T>, float, T>;

}  // namespace gpt2
