// The schedules that look at the number of stages alone, not at their bytes and times.
// Used by whoever wants a known pattern, and by within() as what it must not be worse than.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/check.hpp"
#include "memfit/checkpoint/plan/emit.hpp"
#include "memfit/checkpoint/plan/refuse.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"

namespace memfit::checkpoint {

namespace detail {

inline std::int64_t count_of(chain const& stages) {
  return static_cast<std::int64_t>(stages.size());
}

/// The actions of a schedule whose segments begin at stage 0 and at the stages of `starts`.
inline std::vector<action> segmented(chain const& stages, std::span<std::int64_t const> starts) {
  emitter out(stages);
  if (stages.empty()) out.put(act::turn, 0);
  std::int64_t first = 0;
  for (auto next : starts) {
    out.pass(first, next);
    first = next;
  }
  auto last = count_of(stages) - 1;
  for (auto at = starts.rbegin(); at != starts.rend(); ++at) {
    out.segment(*at, last);
    out.put(act::drop, *at);
    last = *at - 1;
  }
  out.segment(0, last);
  return out.actions();
}

inline std::vector<std::int64_t> multiples(std::int64_t k, std::int64_t below) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; k < below - i;) all.push_back(i += k);
  return all;
}

}  // namespace detail

/// The forward alone, as an evaluation needs it: passes, then the turn, no gradients.
inline schedule forward_only(chain const& stages) {
  detail::require_chain("forward_only", stages);
  detail::emitter out(stages);
  auto const n = detail::count_of(stages);
  out.pass(0, n);
  out.put(act::turn, 0);
  if (n > 0) out.put(act::drop, n);
  return check(stages, out.actions());
}

/// Keeps the inputs of the named stages (stage indices above 0, ascending) and, of course, that of
/// stage 0. What lies between two of them is one segment: passed in the forward, run again with
/// everything saved (variant 0) before its backward; the last segment runs once.
inline schedule keep(chain const& stages, std::span<std::int64_t const> kept) {
  detail::require_chain("keep", stages);
  std::int64_t before = 0;
  for (auto i : kept) {
    if (i <= before || i >= detail::count_of(stages))
      detail::refuse("keep", "stage " + std::to_string(i) + " does not follow stage " +
                                 std::to_string(before) + " in a chain of " +
                                 std::to_string(stages.size()) + " stages");
    before = i;
  }
  return check(stages, detail::segmented(stages, kept));
}

/// Nothing recomputed: every stage runs once with everything saved.
inline schedule keep_all(chain const& stages) {
  detail::require_chain("keep_all", stages);
  return check(stages, detail::segmented(stages, {}));
}

/// Keeps the input of every k-th stage; k at least 1.
inline schedule every(chain const& stages, std::int64_t k) {
  detail::require_chain("every", stages);
  detail::require_at_least("every", "k", k, 1);
  return check(stages, detail::segmented(stages, detail::multiples(k, detail::count_of(stages))));
}

/// every(k) with the least k whose square is no less than the number of stages, for which kept
/// inputs and saved stages are about as many (Chen et al. 2016, arXiv 1604.06174).
inline schedule sqrt_n(chain const& stages) {
  std::int64_t k = 1;
  while (k * k < detail::count_of(stages)) ++k;
  return every(stages, k);
}

}  // namespace memfit::checkpoint
