// A rule's arithmetic on one value or bundle of lanes, whatever of them the rule was written for.
// Used by the drivers of all executors.
#pragma once

#include "memfit/core/lanes.hpp"
#include "memfit/rule/concept.hpp"

namespace memfit::detail {

/// Applies the step's constants to one value or bundle of lanes. A rule that takes plain floats
/// only is applied to one lane after the other.
template <class Rule, class F, int N>
MEMFIT_HD inline void apply_rule(constants_of<Rule> const& k, F& p, F const& g, F (&s)[N]) {
  if constexpr (slot_count<Rule> == 0 && fits_value<Rule, F>) {
    k(p, g);
  } else if constexpr (fits_value<Rule, F>) {
    k(p, g, s);
  } else {
    constexpr int width = ops<F>::width;
    float ps[width], gs[width], ss[N][width];
    ops<F>::store(ps, p);
    ops<F>::store(gs, g);
    for (int j = 0; j < N; ++j) ops<F>::store(ss[j], s[j]);
    for (int i = 0; i < width; ++i) {
      float lane[N];
      for (int j = 0; j < N; ++j) lane[j] = ss[j][i];
      apply_rule<Rule, float, N>(k, ps[i], gs[i], lane);
      for (int j = 0; j < N; ++j) ss[j][i] = lane[j];
    }
    p = ops<F>::load(ps);
    for (int j = 0; j < N; ++j) s[j] = ops<F>::load(ss[j]);
  }
}

}  // namespace memfit::detail
