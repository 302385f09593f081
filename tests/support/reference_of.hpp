// The reference rule for memfit's hyper-parameters.
// Used by tests that step memfit and the reference side by side.
#pragma once

#include "memfit/rule/adaptive.hpp"
#include "memfit/rule/ademamix.hpp"
#include "memfit/rule/amsgrad.hpp"
#include "memfit/rule/layerwise.hpp"
#include "memfit/rule/momentum.hpp"
#include "memfit/rule/nadam.hpp"
#include "memfit/rule/radam.hpp"
#include "memfit/rule/root.hpp"
#include "memfit/rule/sign.hpp"
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
inline adam of(memfit::amsgrad const& r) {
  return {r.lr, r.beta1, r.beta2, r.eps, r.weight_decay, false, true};
}
inline adam of(memfit::amsgradw const& r) {
  return {r.lr, r.beta1, r.beta2, r.eps, r.weight_decay, true, true};
}
inline nadam of(memfit::nadam const& r) {
  return {r.lr, r.beta1, r.beta2, r.eps, r.weight_decay, r.momentum_decay};
}
inline radam of(memfit::radam const& r) {
  return {r.lr, r.beta1, r.beta2, r.eps, r.weight_decay};
}
inline ademamix of(memfit::ademamix const& r) {
  return {r.lr,
          r.beta1,
          r.beta2,
          r.beta3,
          r.alpha,
          r.eps,
          r.weight_decay,
          static_cast<double>(r.alpha_warmup),
          static_cast<double>(r.beta3_warmup)};
}
inline rmsprop of(memfit::rmsprop const& r) {
  return {r.lr, r.alpha, r.eps, r.weight_decay};
}
inline adagrad of(memfit::adagrad const& r) {
  return {r.lr, r.lr_decay, r.eps, r.weight_decay, r.initial_accumulator};
}
inline lion of(memfit::lion const& r) {
  return {r.lr, r.beta1, r.beta2, r.weight_decay};
}
inline signum of(memfit::signum const& r) {
  return {r.lr, r.momentum, r.weight_decay};
}

inline lamb of(memfit::lamb const& r) {
  return {r.lr, r.beta1, r.beta2, r.eps, r.weight_decay, r.min_trust, r.max_trust};
}
inline lars of(memfit::lars const& r) {
  return {r.lr, r.momentum, r.weight_decay, r.trust_coefficient, r.eps, r.min_trust, r.max_trust};
}

}  // namespace reference
