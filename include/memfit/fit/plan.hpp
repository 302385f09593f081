// "My model does not fit: what do I turn on?" The combinations of techniques that fit, by time.
// Used by programs that advise, and by trainers that configure themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "memfit/core/error.hpp"
#include "memfit/fit/device.hpp"
#include "memfit/fit/model.hpp"
#include "memfit/fit/plan/candidates.hpp"
#include "memfit/fit/plan/techniques.hpp"
#include "memfit/fit/plan/types.hpp"

namespace memfit::fit {

namespace detail {

inline void require_wanted(device const& d, wanted const& w) {
  auto const refuse_unless = [](bool right, std::string const& why) {
    if (!right) throw argument_error("memfit::fit::plans: " + why);
  };
  auto const at_least = [&](std::string_view what, std::int64_t value, std::int64_t least) {
    refuse_unless(value >= least, std::string(what) + " is " + std::to_string(value) +
                                      ", must be at least " + std::to_string(least));
  };
  at_least("batch", w.batch, 1);
  at_least("seq", w.seq, 1);
  at_least("micro_batch", w.micro_batch, 0);
  refuse_unless(w.micro_batch <= w.batch, "micro_batch is " + std::to_string(w.micro_batch) +
                                              ", must be at most batch, " +
                                              std::to_string(w.batch));
  at_least("bytes", w.bytes, 0);
  refuse_unless(!w.offered.storages.empty(), "no storage is offered");
  refuse_unless(d.flops_32 > 0 && d.flops_16 > 0 && d.memory_bytes > 0 && d.link_bytes > 0,
                "the rates of device '" + d.name + "' must be above 0");
}

/// Whether `a` is no worse than `b` in any way.
inline bool covers(plan const& a, plan const& b) {
  return a.seconds <= b.seconds && a.precision >= b.precision && a.loss <= b.loss &&
         a.bytes.total() <= b.bytes.total();
}

/// The fastest first; of equals the most exact, then that with the fewest techniques, then that
/// with the fewest bytes. Leaves out what is no better in anything than one before it.
inline std::vector<candidate> best_of(std::vector<candidate> all) {
  auto const key = [](candidate const& c) {
    return std::tuple{c.plan.seconds, -static_cast<int>(c.plan.precision), c.plan.loss,
                      c.techniques, c.plan.bytes.total()};
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](candidate const& a, candidate const& b) { return key(a) < key(b); });
  std::vector<candidate> best;
  for (auto& c : all)
    if (std::none_of(best.begin(), best.end(),
                     [&](candidate const& b) { return covers(b.plan, c.plan); }))
      best.push_back(std::move(c));
  return best;
}

/// Folding changes training more than all else does: without it, where anything fits so.
inline void prefer_unfolded(std::vector<candidate>& all) {
  auto const folds = [](candidate const& c) {
    return c.plan.training.accumulation == accumulation::folded;
  };
  auto const first_folded = std::stable_partition(all.begin(), all.end(), std::not_fn(folds));
  if (first_folded != all.begin()) all.erase(first_folded, all.end());
}

inline plan explained(candidates const& all, candidate const& c, candidate const& plain) {
  plan p = c.plan;
  p.techniques = std::move(comparison(all, c, plain).found());
  return p;
}

}  // namespace detail

/// The ways to train this model on this device, in the bytes that there are, with the precision
/// that is wanted: every combination that is offered of storage, way to sum micro-batches, gradient
/// release, micro-batch (powers of two and divisors of the batch, a quarter apart at least) and
/// schedule of activations (all, the least that one forward can save, or checkpoints within the
/// bytes that are left), each with the fastest schedule that fits. The fastest come first, by
/// estimated seconds per step; where two digits of these are equal, the more exact; plans that are
/// no better in anything than another are left out, and so is folding micro-batches into the
/// moments where anything fits without it. With more bytes the first plan is never slower, unless
/// that for fewer bytes folds.
///
/// Where nothing fits, the answer has the one with the least bytes and what is missing. For one
/// device. Deterministic; one search over the chain, some tenths of a second for 50 stages, serves
/// micro-batches of every size.
/// Throws argument_error for what is no batch, no window, no device or no offer, and where nothing
/// offered is as precise as is wanted.
inline plan_list plans(model const& m, device const& d, wanted const& w) {
  detail::require_wanted(d, w);
  plan_list result;
  result.bytes = w.bytes > 0 ? w.bytes : d.bytes;
  detail::candidates all(m, d, w, result.bytes);
  auto const plain = all.plain();
  result.plain = plain.plan;
  detail::prefer_unfolded(all.fitting());
  for (auto const& c : detail::best_of(std::move(all.fitting())))
    result.plans.push_back(detail::explained(all, c, plain));
  if (!result.plans.empty()) return result;
  auto const& least = all.least();
  if (!least)
    throw argument_error(
        "memfit::fit::plans: no combination that is offered is as precise as is wanted");
  result.nearest = detail::explained(all, *least, plain);
  result.missing = result.nearest->bytes.total() - result.bytes;
  return result;
}

}  // namespace memfit::fit
