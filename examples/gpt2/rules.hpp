// From the rule that the command line names to memfit's, with its hyper-parameters; and the
// function that makes an optimizer of it. Used by the devices of the GPT-2 example.
#pragma once

#include <memfit/rule/adaptive.hpp>
#include <memfit/rule/momentum.hpp>

#include "optimizer.hpp"

namespace gpt2 {

// Defined in grouped_optimizer.hpp, instantiated for one rule in each optimizer_<rule>.
template <class Executor, class Rule, class T>
std::unique_ptr<optimizer<T>> make_grouped(const Executor& exec, const Rule& rule,
                                           state_choice state, column_choice column,
                                           weights<T>& parameters);

template <class Rule>
Rule adaptive(const optimizer_settings& s) {
  return {
      .lr = s.lr, .beta1 = s.beta1, .beta2 = s.beta2, .eps = s.eps, .weight_decay = s.weight_decay};
}

inline memfit::momentum with_momentum(const optimizer_settings& s) {
  memfit::momentum rule;
  rule.lr = s.lr;
  rule.momentum = s.momentum;
  rule.weight_decay = s.weight_decay;
  return rule;
}

template <class Executor, class T>
std::unique_ptr<optimizer<T>> make_optimizer_on(const Executor& exec, const optimizer_settings& s,
                                                weights<T>& parameters) {
  auto const with = [&](const auto& rule) {
    return make_grouped(exec, rule, s.state, s.column, parameters);
  };
  switch (s.rule) {
    case rule_choice::adamw:
      return with(adaptive<memfit::adamw>(s));
    case rule_choice::adam:
      return with(adaptive<memfit::adam>(s));
    case rule_choice::momentum:
      return with(with_momentum(s));
    case rule_choice::sgd:
      return with(memfit::sgd{.lr = s.lr, .weight_decay = s.weight_decay});
  }
  return nullptr;
}

}  // namespace gpt2
