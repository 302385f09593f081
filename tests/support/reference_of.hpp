// The reference rule for memfit's hyper-parameters.
// Used by tests that step memfit and the reference side by side.
#pragma once

#include "memfit/rule/adaptive.hpp"
#include "memfit/rule/momentum.hpp"
#include "support/reference_rule.hpp"

namespace reference {

inline sgd of(memfit::sgd const& r) {
  return {r.lr, r.weight_decay};
}
inline momentum of(memfit::momentum const& r) {
  return {r.lr, r.momentum, r.dampening, r.weight_decay, r.nesterov};
}
inline adam of(memfit::adam const& r) {
  return {r.lr, r.beta1, r.beta2, r.eps, r.weight_decay, false};
}
inline adam of(memfit::adamw const& r) {
  return {r.lr, r.beta1, r.beta2, r.eps, r.weight_decay, true};
}

}  // namespace reference
