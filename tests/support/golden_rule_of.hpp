// memfit's rule with the hyper-parameters of a case of golden/rules.txt.
// Used by the tests that hold memfit's rules and the references against PyTorch's and
// timm's steps.
#pragma once

#include <cmath>

#include "support/golden_rules.hpp"
#include "support/reference_of.hpp"

namespace golden {

/// What timm clips trust ratios to.
inline double most_trust(rule_case const& c) {
  return c["trust_clip"] != 0 ? 1 : HUGE_VAL;
}

/// Calls use(rule); false where no rule has the case's name.
template <class Use>
bool with_rule_of(rule_case const& c, Use const& use) {
  double const lr = c["lr"], eps = c["eps"], decay = c["weight_decay"];
  double const beta1 = c["beta1"], beta2 = c["beta2"];
  auto const is = [&c, &use](char const* name, auto rule) {
    if (c.rule != name) return false;
    use(rule);
    return true;
  };
  return is("sgd", memfit::sgd{lr, decay}) ||
         is("momentum",
            memfit::momentum{lr, c["momentum"], c["dampening"], c["nesterov"] != 0, decay}) ||
         is("adam", memfit::adam{lr, beta1, beta2, eps, decay}) ||
         is("adamw", memfit::adamw{lr, beta1, beta2, eps, decay}) ||
         is("amsgrad", memfit::amsgrad{lr, beta1, beta2, eps, decay}) ||
         is("amsgradw", memfit::amsgradw{lr, beta1, beta2, eps, decay}) ||
         is("nadam", memfit::nadam{lr, beta1, beta2, eps, decay, c["momentum_decay"]}) ||
         is("radam", memfit::radam{lr, beta1, beta2, eps, decay}) ||
         is("rmsprop", memfit::rmsprop{lr, c["alpha"], eps, decay}) ||
         is("adagrad",
            memfit::adagrad{lr, c["lr_decay"], eps, decay, c["initial_accumulator_value"]}) ||
         is("lamb", memfit::lamb{lr, beta1, beta2, eps, decay, 0, most_trust(c)}) ||
         is("lars", memfit::lars{lr, c["momentum"], decay, c["trust_coeff"], eps});
}

}  // namespace golden
