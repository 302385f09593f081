// The dry run of a layerwise rule: which elements count in the norms of their tensor.
// Used by the drivers, which sum in the order of exec/sum.hpp, so that they give the same bits.
#pragma once

#include <cstdint>
#include <utility>

#include "memfit/exec/block.hpp"
#include "memfit/exec/concept.hpp"
#include "memfit/exec/sum.hpp"

namespace memfit::detail {

/// Sums of squares of parameters and directions over one part (exec/sum.hpp) of a tensor. Those of
/// a tensor are joined in the order of a single part, however many there are.
struct layer_squares {
  double parameter, direction;
};

template <class F>
MEMFIT_HD inline uint_of<F> magnitude_bits(F const& x) {
  return bits(x) & 0x7fffffffu;
}

/// Which of these elements count: those that are finite and whose moments after the dry run can be
/// stored, as the step itself will find. `g` is the multiplied gradient before the gate's limit.
template <class Rule, class Format, class F, int N, int... I>
MEMFIT_HD inline mask_of<F> counts(F const& p, F const& g, F const& u,
                                   [[maybe_unused]] F const (&s)[N],
                                   std::integer_sequence<int, I...>) {
  auto const most = larger(larger(magnitude_bits(p), magnitude_bits(g)), magnitude_bits(u));
  mask_of<F> all = most < uint_of<F>(infinity_bits);
  if constexpr (directs_by_slots<Rule>) {
    mask_of<F> const stored[] = {magnitude_bits(s[I]) <
                                 uint_of<F>(moment_limit<slot_codec<Rule, Format, I>>)...};
    for (auto const& one : stored) all = all & one;
  }
  return all;
}

}  // namespace memfit::detail
