// The binomial schedule: the fewest forwards with a given number of kept activations.
// Used where stages are about equal, and by within() as what it must not be worse than.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/check.hpp"
#include "memfit/checkpoint/plan/emit.hpp"
#include "memfit/checkpoint/plan/refuse.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"
#include "memfit/checkpoint/plan/simple.hpp"

namespace memfit::checkpoint {

namespace detail {

/// b(s, r) = C(s + r, s) stages can be reversed with s slots and r passes of each. For the least r
/// that suffices for `length` stages: r, b(slots, r) and b(slots, r - 1).
struct binomial_reach {
  std::int64_t r = 0, stages = 1, before = 1;

  binomial_reach(std::int64_t length, std::int64_t slots) {
    while (stages < length) {
      before = stages;
      ++r;
      stages = stages * (slots + r) / r;
    }
  }
};

/// How far to pass before the next activation is kept, for `length` (at least 2) stages with
/// `slots` (at least 1) kept activations, the segment's input among them. No stage is passed more
/// than r times where the first part is no longer than b(slots, r - 1) and the second no shorter
/// than b(slots - 1, r - 1) = b(slots, r - 1) slots / (slots + r - 1).
inline std::int64_t binomial_split(std::int64_t length, std::int64_t slots) {
  binomial_reach const reach(length, slots);
  return std::min(reach.before, length - reach.before * slots / (slots + reach.r - 1));
}

/// The passes of the whole schedule: r length - C(slots + r, slots + 1).
inline std::int64_t binomial_passes(std::int64_t length, std::int64_t slots) {
  binomial_reach const reach(length, slots);
  return reach.r * length - reach.stages * reach.r / (slots + 1);
}

inline std::vector<action> binomial(chain const& stages, std::int64_t slots) {
  struct part {
    std::int64_t first, last, slots;
    bool drops;  // of its input when it is done
  };
  emitter out(stages);
  if (stages.empty()) {
    out.put(act::turn, 0);
    return out.actions();
  }
  std::vector<part> todo{{0, count_of(stages) - 1, std::min(slots, count_of(stages)), false}};
  while (!todo.empty()) {
    auto const p = todo.back();
    todo.pop_back();
    if (p.first == p.last) {
      out.segment(p.first, p.last);
      if (p.drops) out.put(act::drop, p.first);
      continue;
    }
    auto const middle = p.first + binomial_split(p.last - p.first + 1, p.slots);
    out.pass(p.first, middle);
    todo.push_back({p.first, middle - 1, p.slots, p.drops});
    todo.push_back({middle, p.last, p.slots - 1, true});
  }
  return out.actions();
}

}  // namespace detail

/// The fewest forwards with at most `slots` activations kept at a time (at least 1), optimal where
/// all stages are equal: Griewank and Walther 2000, Algorithm 799. The chain's input occupies one
/// slot; the activation in hand, input of the stage that runs, none. n stages take n runs and
/// r n - C(slots + r, slots + 1) passes, with r the least for which C(slots + r, slots) >= n.
inline schedule revolve(chain const& stages, std::int64_t slots) {
  detail::require_chain("revolve", stages);
  detail::require_at_least("revolve", "slots", slots, 1);
  return check(stages, detail::binomial(stages, slots));
}

/// Keeps the input alone and starts from it for every stage: n (n - 1) / 2 passes for n stages.
inline schedule recompute_all(chain const& stages) {
  detail::require_chain("recompute_all", stages);
  return check(stages, detail::binomial(stages, 1));
}

}  // namespace memfit::checkpoint
