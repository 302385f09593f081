// A memfit optimizer for matrices and one for gains and biases, which know no weight decay, behind
// the common face. Used by optimizer_<rule>, each of which includes the executor and instantiates
// this for one rule and every state format.
#pragma once

#include <memfit/optimizer.hpp>

#include <vector>

#include "memfit_tensor.hpp"
#include "rules.hpp"

namespace gpt2 {

template <class Rule, class Format>
class grouped_optimizer final : public optimizer {
 public:
  template <class Executor>
  grouped_optimizer(const Executor& exec, const Rule& rule, weights<float>& parameters)
      : matrices_{exec, rule, select(parameters, true)},
        vectors_{exec, without_decay(rule), select(parameters, false)} {}

  void step(weights<float>& gradients, double lr) override {
    matrices_.rule().lr = lr;
    vectors_.rule().lr = lr;
    matrices_.step(select(gradients, true));
    vectors_.step(select(gradients, false));
  }

  [[nodiscard]] index state_bytes() const override {
    return matrices_.describe().state_bytes + vectors_.describe().state_bytes;
  }

 private:
  static Rule without_decay(Rule rule) {
    rule.weight_decay = 0;
    return rule;
  }

  static std::vector<memfit::tensor_ref<float>> select(weights<float>& from, bool matrices) {
    std::vector<memfit::tensor_ref<float>> chosen;
    for (tensor<float>* t : from.all())
      if (t->is_matrix() == matrices) chosen.push_back(memfit::ref(*t));
    return chosen;
  }

  memfit::optimizer<Rule, Format> matrices_, vectors_;
};

template <class Executor, class Rule>
std::unique_ptr<optimizer> make_grouped(const Executor& exec, const Rule& rule, state_choice state,
                                        weights<float>& parameters) {
  auto const with = [&]<class Format>(Format) -> std::unique_ptr<optimizer> {
    return std::make_unique<grouped_optimizer<Rule, Format>>(exec, rule, parameters);
  };
  switch (state) {
    case state_choice::fp32:
      return with(memfit::fp32{});
    case state_choice::bf16:
      return with(memfit::bf16{});
    case state_choice::dynamic8:
      return with(memfit::dynamic8{});
    case state_choice::float8:
      return with(memfit::float8{});
    case state_choice::linear8:
      return with(memfit::linear8{});
  }
  return nullptr;
}

}  // namespace gpt2
