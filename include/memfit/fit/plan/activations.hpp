// The schedules of activations that plans choose from, with bytes and times of every pass.
// Used by the planner: one search serves micro-batches of every size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/check.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"
#include "memfit/checkpoint/plan/simple.hpp"
#include "memfit/checkpoint/plan/within.hpp"
#include "memfit/fit/model.hpp"
#include "memfit/fit/plan/types.hpp"

namespace memfit::fit::detail {

/// Actions for any chain of the shape they were planned for.
struct pattern {
  activations kept = activations::all;
  std::shared_ptr<std::vector<checkpoint::action> const> actions;

  checkpoint::schedule operator()(checkpoint::chain const& c) const {
    return checkpoint::checked(c, *actions);
  }
};

/// A pattern in one pass.
struct pass_cost {
  pattern const* how = nullptr;
  std::int64_t peak = 0;
  double seconds = 0;         ///< of computing
  std::int64_t launches = 0;  ///< forwards and backwards of stages

  pass_cost(pattern const& p, checkpoint::chain const& c) : how(&p) {
    auto const plan = p(c);
    peak = plan.peak;
    seconds = static_cast<double>(plan.time) * 1e-9;
    launches = plan.forwards + static_cast<std::int64_t>(c.size());
  }
};

inline bool same_shape(checkpoint::chain const& a, checkpoint::chain const& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](checkpoint::stage const& s, checkpoint::stage const& t) {
                      return s.variants.size() == t.variants.size() &&
                             s.reads_output == t.reads_output;
                    });
}

/// Every stage is run once, in the variant that saves least.
inline std::vector<checkpoint::action> save_least(checkpoint::chain const& c) {
  auto actions = checkpoint::keep_all(c).actions;
  for (auto& a : actions) {
    if (a.what != checkpoint::act::run) continue;
    auto const& variants = c[static_cast<std::size_t>(a.index)].variants;
    auto const least =
        std::min_element(variants.begin(), variants.end(),
                         [](auto const& v, auto const& w) { return v.saved < w.saved; });
    a.variant = static_cast<int>(least - variants.begin());
  }
  return actions;
}

/// The schedule that is offered alone, or else of keeping all, saving the least and, where they are
/// offered, checkpoints within any bytes.
inline std::vector<pattern> patterns_for(checkpoint::chain const& c, offers const& offered) {
  constexpr std::int64_t schedules = 100;
  std::vector<pattern> all;
  auto const add = [&](activations kept, std::vector<checkpoint::action> actions) {
    all.push_back(
        {kept, std::make_shared<std::vector<checkpoint::action> const>(std::move(actions))});
  };
  if (offered.schedule) {
    add(activations::checkpoints, offered.schedule(c).actions);
    return all;
  }
  add(activations::all, checkpoint::keep_all(c).actions);
  if (!offered.checkpoints) return all;
  add(activations::selective, save_least(c));
  for (auto& s : checkpoint::trade(c, schedules))
    add(activations::checkpoints, std::move(s.actions));
  return all;
}

/// Costs of all patterns by pass. The patterns are found with the first pass that is asked for, and
/// again should a chain have another shape.
class pass_costs {
 public:
  pass_costs(model const& m, offers const& offered) : model_(m), offered_(offered) {}

  /// The fastest first, equal ones by rising peak; stays as long as this does.
  std::vector<pass_cost> const& of(pass const& p, rates const& r) {
    auto const [at, fresh] = known_.try_emplace({p.element_bytes, p.batch});
    if (fresh) at->second = costs_of(model_.chain(p, r));
    return at->second;
  }

 private:
  std::vector<pass_cost> costs_of(checkpoint::chain const& c) {
    std::vector<pass_cost> costs;
    for (auto const& p : patterns_of(c)) costs.emplace_back(p, c);
    std::stable_sort(costs.begin(), costs.end(), [](pass_cost const& a, pass_cost const& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.peak < b.peak;
    });
    return costs;
  }

  std::vector<pattern> const& patterns_of(checkpoint::chain const& c) {
    for (auto const& [shape, patterns] : patterns_)
      if (same_shape(shape, c)) return patterns;
    return patterns_.emplace_back(c, patterns_for(c, offered_)).second;
  }

  model const& model_;
  offers const& offered_;
  std::list<std::pair<checkpoint::chain, std::vector<pattern>>> patterns_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<pass_cost>> known_;
};

}  // namespace memfit::fit::detail
