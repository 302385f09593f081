// What is switched on in a plan, and what each technique saves and costs.
// Used by the planner, for the plans that it returns.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "memfit/fit/plan/activations.hpp"
#include "memfit/fit/plan/candidates.hpp"
#include "memfit/fit/plan/types.hpp"
#include "memfit/fit/training.hpp"

namespace memfit::fit::detail {

/// Compares a plan with what it were without each of its techniques, all others as they are.
class comparison {
 public:
  /// `plain` is the first storage with everything kept.
  comparison(candidates const& all, candidate const& c, candidate const& plain)
      : all_(all), candidate_(c), plain_(plain), with_(all.measured(c.plan.training, *c.kept)) {
    compare_storage();
    compare_sums();
    compare_release();
    compare_activations();
    compare_offload();
  }

  std::vector<technique>& found() { return found_; }

 private:
  static constexpr auto same = "same results";

  training const& chosen() const { return candidate_.plan.training; }

  void add(std::string name, double loss, std::string effect, training const& without,
           pattern const& kept) {
    auto const [seconds, b] = all_.measured(without, kept);
    found_.push_back({std::move(name), b.total() - with_.second.total(), with_.first - seconds,
                      loss, std::move(effect)});
  }
  void add(std::string name, double loss, std::string effect, training const& without) {
    add(std::move(name), loss, std::move(effect), without, *candidate_.kept);
  }

  void compare_storage() {
    auto const& [column, states] = *candidate_.storage;
    if (column.cost.name != plain_.storage->column.cost.name) {
      auto t = chosen();
      t.column = plain_.storage->column.cost;
      add("parameters in " + column.cost.name, column.loss, column.effect, t);
    }
    if (states.cost.format != plain_.storage->states.cost.format) {
      auto t = chosen();
      t.states = plain_.storage->states.cost;
      add("moments in " + states.cost.format, states.loss, states.effect, t);
    }
  }

  void compare_sums() {
    if (chosen().micro_batch == chosen().batch) return;
    auto t = chosen();
    t.micro_batch = t.batch;
    t.accumulation = accumulation::none;
    add("micro-batches of " + std::to_string(chosen().micro_batch), 0,
        "same results but for the order of sums", t);
    if (chosen().accumulation != accumulation::bf16) return;
    t = chosen();
    t.accumulation = accumulation::fp32;
    add("sums in bf16", bf16_sums_loss,
        "sums of micro-batches are rounded at random, right in the mean", t);
  }

  void compare_release() {
    if (!chosen().gradient_release) return;
    bool const folds = chosen().accumulation == accumulation::folded;
    auto t = chosen();
    t.gradient_release = false;
    if (folds) t.accumulation = accumulation::fp32;
    std::string effect = folds
                             ? "second moments average the squares of micro-batches' gradients, so "
                               "that noise makes steps smaller (after arXiv 2305.19982)"
                             : same;
    if (t.clips) effect += folds ? "; " : " but clipping: ";
    if (t.clips) effect += "a stage is clipped by the norm so far or of the window before";
    add(folds ? "gradient release, folding micro-batches into the moments" : "gradient release",
        loss_of({chosen().accumulation, true}, t.clips), std::move(effect), t);
  }

  void compare_activations() {
    if (candidate_.plan.kept == plain_.plan.kept) return;
    auto t = chosen();
    t.schedule = *plain_.kept;
    add(candidate_.plan.kept == activations::selective ? "activations saved selectively"
                                                       : "activation checkpoints",
        0, same, t, *plain_.kept);
  }

  void compare_offload() {
    if (!chosen().offloads_states) return;
    auto t = chosen();
    t.offloads_states = false;
    add("moments in the host's memory", 0, same, t);
  }

  candidates const& all_;
  candidate const& candidate_;
  candidate const& plain_;
  std::pair<double, bytes> with_;
  std::vector<technique> found_;
};

}  // namespace memfit::fit::detail
