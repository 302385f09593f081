// Every combination of techniques that a program offers, each with the fastest schedule that fits.
// Used by the planner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "memfit/fit/device.hpp"
#include "memfit/fit/estimate.hpp"
#include "memfit/fit/model.hpp"
#include "memfit/fit/plan/activations.hpp"
#include "memfit/fit/plan/time.hpp"
#include "memfit/fit/plan/types.hpp"
#include "memfit/fit/training.hpp"

namespace memfit::fit::detail {

/// One way from the gradients of micro-batches to a step.
struct gathering {
  fit::accumulation accumulation = fit::accumulation::none;
  bool gradient_release = false;
};

/// What a gathering or clipping does to the results: at most one thing each.
inline constexpr auto bf16_sums_loss = 0.01, folding_loss = 0.15, last_norm_loss = 0.05;

inline precision precision_of(gathering const& g, bool clips) {
  bool const sums_exactly =
      g.accumulation == accumulation::none || g.accumulation == accumulation::fp32;
  return sums_exactly && !(g.gradient_release && clips) ? precision::exact : precision::bits24;
}

inline double loss_of(gathering const& g, bool clips) {
  auto const sums = g.accumulation == accumulation::bf16     ? bf16_sums_loss
                    : g.accumulation == accumulation::folded ? folding_loss
                                                             : 0.0;
  return sums + (g.gradient_release && clips ? last_norm_loss : 0.0);
}

/// Powers of two and divisors of the batch, none within a quarter of the one before but the batch.
inline std::vector<std::int64_t> micro_batches(std::int64_t batch) {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n <= batch / 2; n *= 2) all.push_back(n);
  for (std::int64_t n = 1; n <= batch / n; ++n)
    if (batch % n == 0) {
      all.push_back(n);
      if (n > 1) all.push_back(batch / n);
    }
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> kept;
  for (auto const n : all)
    if (n < batch && (kept.empty() || n > kept.back() + kept.back() / 4)) kept.push_back(n);
  kept.push_back(batch);
  return kept;
}

/// A plan, and where it comes from.
struct candidate {
  fit::plan plan;
  storage_choice const* storage = nullptr;
  pattern const* kept = nullptr;
  int techniques = 0;
};

/// All that fits, or the one that takes the least bytes.
class candidates {
 public:
  candidates(model const& m, device const& d, wanted const& w, std::int64_t bytes)
      : model_(m), device_(d), wanted_(w), bytes_(bytes), costs_(m, wanted_.offered) {
    for (auto const& s : w.offered.storages)
      if ((std::min)(s.column.precision, s.states.precision) >= w.precision) add_storage(s);
  }

  std::vector<candidate>& fitting() { return fitting_; }
  /// Of what does not fit; empty where all does, or nothing has the precision that is wanted.
  std::optional<candidate> const& least() const { return least_; }

  /// The first storage with whole batches and all activations, unless one schedule alone is
  /// offered.
  candidate plain() {
    auto t = training_of(wanted_.offered.storages.front(), wanted_.batch, {});
    auto const& costs = costs_.of(pass_of(t), device_.at(t.column.element_bytes));
    auto const all = std::find_if(costs.begin(), costs.end(), [](pass_cost const& c) {
      return c.how->kept == activations::all;
    });
    return finished(t, wanted_.offered.storages.front(), {},
                    all == costs.end() ? costs.front() : *all);
  }

  /// Seconds and bytes of any training that keeps activations by a pattern.
  std::pair<double, bytes> measured(training const& t, pattern const& kept) const {
    auto const chain = model_.chain(pass_of(t), device_.at(t.column.element_bytes));
    auto const b = estimate(model_, t);
    return {seconds_of(t, b, device_, pass_cost(kept, chain)), b};
  }

 private:
  static pass pass_of(training const& t) {
    return {.batch = t.micro_batch, .seq = t.seq, .element_bytes = t.column.element_bytes};
  }

  training training_of(storage_choice const& s, std::int64_t micro, gathering g) const {
    training t;
    t.batch = wanted_.batch;
    t.micro_batch = micro;
    t.seq = wanted_.seq;
    t.column = s.column.cost;
    t.states = s.states.cost;
    t.accumulation = g.accumulation;
    t.gradient_release = g.gradient_release;
    t.clips = wanted_.clips;
    return t;
  }

  std::vector<gathering> gatherings(std::int64_t micro, state_cost const& states) const {
    auto const& offered = wanted_.offered;
    std::vector<gathering> all;
    auto const add = [&](bool has, accumulation a, bool release) {
      gathering const g{a, release};
      bool const offers = has && (release ? offered.gradient_release : offered.kept_gradients);
      if (offers && precision_of(g, wanted_.clips) >= wanted_.precision) all.push_back(g);
    };
    if (micro == wanted_.batch) {
      add(true, accumulation::none, false);
      add(true, accumulation::none, true);
      return all;
    }
    add(offered.fp32_sums, accumulation::fp32, false);
    add(offered.bf16_sums, accumulation::bf16, false);
    bool const few = (wanted_.batch - 1) / micro < states.most_folded;
    add(offered.folds && states.folds && few, accumulation::folded, true);
    return all;
  }

  std::vector<std::int64_t> micro_batches() const {
    if (wanted_.micro_batch != 0) return {wanted_.micro_batch};
    return detail::micro_batches(wanted_.batch);
  }

  /// Larger micro-batches have larger activations: none is tried beyond those that alone are more
  /// than there is and more than the least that has been found.
  void add_storage(storage_choice const& s) {
    for (auto const micro : micro_batches()) {
      auto const& costs = costs_.of({micro, wanted_.seq, s.column.cost.element_bytes},
                                    device_.at(s.column.cost.element_bytes));
      for (auto const& g : gatherings(micro, s.states.cost))
        for (bool const offloads : {false, true}) {
          if (offloads && !wanted_.offered.offloads_states) continue;
          auto t = training_of(s, micro, g);
          t.offloads_states = offloads;
          add(t, s, g, costs);
        }
      if (smallest(costs).peak > (std::max)(bytes_, least_ ? least_->plan.bytes.total() : 0))
        return;
    }
  }

  static pass_cost const& smallest(std::vector<pass_cost> const& costs) {
    return *std::min_element(
        costs.begin(), costs.end(),
        [](pass_cost const& a, pass_cost const& b) { return a.peak < b.peak; });
  }

  void add(training& t, storage_choice const& s, gathering const& g,
           std::vector<pass_cost> const& costs) {
    t.schedule = [](checkpoint::chain const&) { return checkpoint::schedule{}; };
    auto const left = bytes_ - estimate(model_, t).total();
    pass_cost const* fastest = nullptr;
    for (auto const& c : costs)
      if (c.peak <= left &&
          (fastest == nullptr || pass_seconds(t, device_, c) < pass_seconds(t, device_, *fastest)))
        fastest = &c;
    if (fastest != nullptr) return fitting_.push_back(finished(t, s, g, *fastest));
    auto found = finished(t, s, g, smallest(costs));
    if (!least_ || found.plan.bytes.total() < least_->plan.bytes.total()) least_ = std::move(found);
  }

  candidate finished(training t, storage_choice const& s, gathering const& g,
                     pass_cost const& pass) const {
    t.schedule = *pass.how;
    plan p;
    p.kept = pass.how->kept;
    p.bytes = estimate(model_, t);
    p.seconds = two_digits(seconds_of(t, p.bytes, device_, pass));
    p.precision =
        (std::min)({s.column.precision, s.states.precision, precision_of(g, wanted_.clips)});
    p.loss = s.column.loss + s.states.loss + loss_of(g, wanted_.clips);
    auto const& first = wanted_.offered.storages.front();
    int const techniques = (s.column.cost.name != first.column.cost.name) +
                           (s.states.cost.format != first.states.cost.format) +
                           (t.micro_batch < t.batch) + (t.accumulation == accumulation::bf16) +
                           t.gradient_release + (p.kept != activations::all) + t.offloads_states;
    p.training = std::move(t);
    return {std::move(p), &s, pass.how, techniques};
  }

  model const& model_;
  device const& device_;
  wanted const& wanted_;
  std::int64_t bytes_;
  pass_costs costs_;
  std::vector<candidate> fitting_;
  std::optional<candidate> least_;
};

}  // namespace memfit::fit::detail
