// What ranks that train together must offer, whoever implements it: sums over all of them.
// Used by gradient_accumulator::reduce and sharded_norm; thread_group.hpp has one for one process.
#pragma once

#include <concepts>
#include <cstdint>

#include "memfit/core/types.hpp"

namespace memfit {

/// One rank's end of a group of ranks. all_reduce_sum(data, count) replaces every element by the
/// sum of this element over all ranks, on all of them with the same bits; all ranks make the same
/// calls in the same order. Data lies in the memory of the rank's executor, and the call is ordered
/// on that executor as every function of memfit is.
template <class C>
concept communicator = requires(C& c, float* f, double* d, bf16* h, std::int64_t count) {
  { c.rank() } -> std::convertible_to<int>;
  { c.size() } -> std::convertible_to<int>;
  c.all_reduce_sum(f, count);
  c.all_reduce_sum(d, count);
  c.all_reduce_sum(h, count);
};

}  // namespace memfit
