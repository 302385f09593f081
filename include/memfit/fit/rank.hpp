// What one rank takes: its stages, and its part of what others divide with it.
// Used by the estimate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"
#include "memfit/checkpoint/plan/simple.hpp"
#include "memfit/fit/divide.hpp"
#include "memfit/fit/model.hpp"
#include "memfit/fit/sums.hpp"
#include "memfit/fit/training.hpp"

namespace memfit::fit::detail {

inline pass pass_of(training const& t) {
  return {t.micro_batch, t.seq, t.column.element_bytes, t.ranks.tensor};
}

/// Bytes alive when the forward is over: what a pass under way holds.
inline std::int64_t held_at_turn(checkpoint::chain const& stages, checkpoint::schedule const& s) {
  using checkpoint::act;
  std::int64_t held = 0;
  for (auto const& a : s.actions) {
    auto const i = static_cast<std::size_t>(a.index);
    if (a.what == act::turn) break;
    if (a.what == act::pass || (a.what == act::run && a.output)) held += stages[i].output;
    if (a.what == act::run) held += stages[i].variants[static_cast<std::size_t>(a.variant)].saved;
    if (a.what == act::load) held += stages[i - 1].output;
    if (a.what == act::drop) held -= stages[i - 1].output;
  }
  return held;
}

/// What an optimizer holds beside parameters.
struct state_bytes {
  std::vector<std::int64_t> codes;
  std::int64_t scales = 0, kept = 0;

  std::int64_t total() const { return std::accumulate(codes.begin(), codes.end(), scales + kept); }
};

/// A tensor of a rank, with the first and the last of its stages that name it.
struct rank_tensor {
  std::int64_t count = 0;  ///< of the rank, before data-parallel ranks divide it
  std::size_t first = 0, last = 0;
};

class rank_estimate {
 public:
  rank_estimate(model const& m, training const& t, checkpoint::chain const& whole, stage_run run)
      : model_(m),
        training_(t),
        whole_(whole),
        run_(run),
        passes_(share(t.batch, t.micro_batch)),
        tensors_(tensors_of_run()) {}

  bytes operator()() {
    count_tensors();
    count_gradients();
    count_activations();
    count_communication();
    count_workspace();
    return std::move(result_);
  }

 private:
  std::int64_t element_bytes() const { return training_.column.element_bytes; }
  std::int64_t elements(parameter const& p) const {
    return p.divides ? share(p.count, training_.ranks.tensor) : p.count;
  }
  /// The part of a rank where data-parallel ranks divide from this ZeRO stage on.
  std::int64_t part(std::int64_t count, int zero_stage) const {
    auto const& ranks = training_.ranks;
    return ranks.zero_stage >= zero_stage ? share(count, ranks.data) : count;
  }

  std::vector<rank_tensor> tensors_of_run() const {
    std::vector<rank_tensor> all;
    std::unordered_map<std::string_view, std::size_t> known;
    for (auto s = run_.first; s < run_.last; ++s)
      for (auto const& p : model_.stages[s].parameters) {
        auto const [at, fresh] = known.try_emplace(p.name, all.size());
        if (fresh || p.name.empty())
          all.push_back({elements(p), s, s});
        else
          all[at->second].last = s;
      }
    return all;
  }

  void add_states(std::int64_t count, state_bytes& to) const {
    auto const& states = training_.states;
    auto const n = part(count, 1);
    to.codes.resize(states.moments.size());
    for (std::size_t i = 0; i < states.moments.size(); ++i) {
      auto const& moment = states.moments[i];
      bool const quantized = n >= states.min_quantized;
      to.codes[i] += quantized ? moment.code_bytes(n) : moment.exact_bytes(n);
      to.scales += quantized ? moment.scale_bytes(n) : 0;
    }
    to.kept += n * training_.column.kept_bytes;
  }

  /// Bytes of an element of the sums of several passes; 0 where there are none.
  std::int64_t bytes_of_sum() const {
    if (passes_ == 1) return 0;
    if (training_.accumulation == accumulation::fp32) return 4;
    return training_.accumulation == accumulation::bf16 ? 2 : 0;
  }

  void count_tensors() {
    state_bytes states;
    states.codes.resize(training_.states.moments.size());
    for (auto const& t : tensors_) {
      result_.parameters += part(t.count, 3) * element_bytes();
      add_states(t.count, states);
      if (auto const of_sum = bytes_of_sum(); of_sum != 0)
        result_.sums += elements_of_sums(part(t.count, 2), of_sum) * of_sum;
    }
    if (training_.offloads_states) result_.host += std::exchange(states, {}).total();
    result_.moments = std::move(states.codes);
    result_.moments.resize(training_.states.moments.size());
    result_.scales = states.scales;
    result_.kept = states.kept;
  }

  /// A gradient is there from the backward of the last stage that names its tensor to that of the
  /// first; without release, all the time.
  void count_gradients() {
    std::vector<std::int64_t> begun(run_.last + 1), over(run_.last + 1);
    for (auto const& t : tensors_) {
      auto const of_tensor = part(t.count, 2) * element_bytes();
      begun[t.first] += of_tensor;
      over[t.last + 1] += of_tensor;
    }
    std::int64_t alive = 0;
    for (auto s = run_.first; s < run_.last; ++s) {
      if (training_.gradient_release) alive -= over[s];
      alive += begun[s];
      result_.gradients = (std::max)(result_.gradients, alive);
    }
  }

  checkpoint::chain chain() const {
    return {whole_.begin() + static_cast<std::ptrdiff_t>(run_.first),
            whole_.begin() + static_cast<std::ptrdiff_t>(run_.last)};
  }
  void count_activations() {
    auto const stages = chain();
    auto const plan =
        training_.schedule ? training_.schedule(stages) : checkpoint::keep_all(stages);
    auto const in_flight = (std::min)(run_.in_flight, passes_);
    result_.activations = plus_times(plan.peak, in_flight - 1, held_at_turn(stages, plan));
    result_.host = plus_times(result_.host, in_flight, plan.second_peak);
    if (run_.first == 0) return;
    auto const& before = whole_[run_.first - 1];
    result_.activations = plus_times(result_.activations, in_flight, before.output);
    result_.activations = plus_times(result_.activations, 1, before.gradient);
  }
  static std::int64_t plus_times(std::int64_t sum, std::int64_t times, std::int64_t bytes) {
    if (__builtin_mul_overflow(times, bytes, &bytes) || __builtin_add_overflow(sum, bytes, &sum))
      throw argument_error(
          "memfit::fit::estimate: the activations of all micro-batches under way do not fit into "
          "64 bits");
    return sum;
  }

  void count_communication() {
    auto const of_elements = [this](std::int64_t n) { return n * element_bytes(); };
    auto const of_states = [this](std::int64_t n) {
      state_bytes states;
      add_states(n, states);
      return states.total();
    };
    auto const& ranks = training_.ranks;
    if (ranks.data > 1 && ranks.zero_stage >= 2)
      result_.communication += (ranks.zero_stage - 1) * largest_stage(of_elements);
    if (training_.offloads_states) result_.communication += largest_stage(of_states);
    if (run_.first > 0) count_border(run_.first - 1);
    if (run_.last < whole_.size()) count_border(run_.last - 1);
  }
  void count_border(std::size_t stage) {
    result_.communication += whole_[stage].output + whole_[stage].gradient;
  }
  template <class Of>
  std::int64_t largest_stage(Of const& of) const {
    std::int64_t most = 0;
    for (auto s = run_.first; s < run_.last; ++s) {
      std::int64_t sum = 0;
      for (auto const& p : model_.stages[s].parameters) sum += of(elements(p));
      most = (std::max)(most, sum);
    }
    return most;
  }

  void count_workspace() {
    if (model_.workspace) result_.workspace += model_.workspace(pass_of(training_));
    if (training_.states.shared_bytes)
      result_.workspace +=
          training_.states.shared_bytes(static_cast<std::int64_t>(tensors_.size()));
    if (training_.clips || bytes_of_sum() != 0)
      for (auto const& t : tensors_) result_.workspace += 50 + 24 * share(part(t.count, 2), 1024);
  }

  model const& model_;
  training const& training_;
  checkpoint::chain const& whole_;
  stage_run run_;
  std::int64_t passes_;
  std::vector<rank_tensor> tensors_;
  bytes result_;
};

}  // namespace memfit::fit::detail
