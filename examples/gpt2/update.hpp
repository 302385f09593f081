// From the gradients of a step's micro-batches to new parameters, by memfit's parts: sums over
// micro-batches, loss scale, clipping, and a gate that tells the optimizer of both.
// Used by the devices, which make it, and the trainer. Nothing here but `tell` waits for the
// device.
#pragma once

#include <memfit/accumulator.hpp>
#include <memfit/clip.hpp>
#include <memfit/gradients.hpp>
#include <memfit/release.hpp>
#include <memfit/scaler.hpp>

#include <limits>
#include <optional>
#include <variant>

#include "memfit_tensor.hpp"
#include "optimizer.hpp"
#include "report.hpp"

namespace gpt2 {

struct update_settings {
  bool sums = false;     // over several micro-batches, in memory of their own
  bool release = false;  // stages are stepped as soon as their gradients are complete
  sum_choice sum_in = sum_choice::fp32;
  index seed = 0;  // of sums that are rounded at random
  std::optional<memfit::loss_scaler_options> loss_scale;
  std::optional<double> clip_norm, clip_percentile;  // at most one of them
};

// Holds on to the gradients and the optimizer it was made for.
template <class T>
class update {
 public:
  template <class Executor>
  update(const Executor& exec, const update_settings& settings, weights<T>& gradients,
         optimizer<T>& stepping)
      : settings_{settings}, stepping_{stepping}, own_{list(gradients)} {
    if (settings.loss_scale) scaler_.emplace(exec, *settings.loss_scale);
    if (settings.sums) make_sums(exec);
    if (settings.release) make_release(exec);
    if (!settings.sums && !settings.release && measures()) norm_.emplace(exec, own_);
    if (!settings.release && measures()) clipper_.emplace(exec);
  }

  // What the loss is to be multiplied by, in the device's memory; null for 1.
  [[nodiscard]] const float* loss_scale() const { return scaler_ ? scaler_->scale() : nullptr; }

  // After each backward pass over so many tokens. Returns whether the gradients have been taken
  // and are zeros again; else they stay for `step`, and there is one pass for each.
  bool add(index tokens);

  // Where gradients are released: before a step's first pass over so many tokens in all, before
  // each pass, and after each stage of it, whose gradients may be overwritten then.
  void begin(double lr, index tokens);
  void begin_pass(index tokens);
  void complete(const completed<T>& stage);

  // Ends the step's micro-batches. A gradient that is not finite makes a step with a loss scale or
  // with clipping change nothing; else its element stays as it was.
  void step(double lr);

  // Fills in what is known after the step. Waits for the device.
  void tell(report& r) const;

  void add_states(state_parts& to);

 private:
  using fp32_sums = memfit::gradient_accumulator<memfit::fp32>;
  using bf16_sums = memfit::gradient_accumulator<memfit::stochastic<bf16>>;

  static std::vector<memfit::tensor_ref<T>> list(weights<T>& gradients) {
    std::vector<memfit::tensor_ref<T>> all;
    for (tensor<T>* t : gradients.all()) all.push_back(memfit::ref(*t));
    return all;
  }

  template <class Executor>
  void make_sums(const Executor& exec) {
    memfit::accumulator_options const options{static_cast<std::uint64_t>(settings_.seed)};
    if (settings_.sum_in == sum_choice::fp32)
      sums_.template emplace<fp32_sums>(exec, own_, options);
    else
      sums_.template emplace<bf16_sums>(exec, own_, options);
  }

  template <class Executor>
  void make_release(const Executor& exec) {
    constexpr double unlimited = std::numeric_limits<double>::infinity();
    release_.emplace(exec, stepping_,
                     memfit::release_options{.clip_norm = settings_.clip_norm.value_or(unlimited)});
  }

  [[nodiscard]] bool clips() const { return settings_.clip_norm || settings_.clip_percentile; }
  // A loss scale sees by the norm of gradients whether they are finite; that of sums, by itself.
  [[nodiscard]] bool measures() const {
    return clips() || (settings_.loss_scale && !settings_.sums);
  }
  memfit::gate clipped(const double* norm, const memfit::gate& g);
  void end_release();

  update_settings settings_;
  optimizer<T>& stepping_;
  std::vector<memfit::tensor_ref<T>> own_;
  std::optional<memfit::loss_scaler> scaler_;
  std::variant<std::monostate, fp32_sums, bf16_sums> sums_;
  std::optional<memfit::global_norm> norm_;
  std::optional<memfit::norm_clipper> clipper_;
  std::optional<memfit::gradient_release<optimizer<T>>> release_;
};

}  // namespace gpt2
