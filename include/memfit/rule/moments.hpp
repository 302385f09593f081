// What rules with a second moment share: averages of the gradient, and a direction under their
// root. Used by the rules themselves.
#pragma once

#include "memfit/core/scalar.hpp"
#include "memfit/rule/concept.hpp"

namespace memfit::detail {

/// A direction relative to the root of a second moment. Without a second moment it is zero, so that
/// nothing is ever divided by eps alone.
template <class F>
MEMFIT_HD inline F over_root(F const& direction, F const& square, float slope, float eps) {
  F const root = fma(sqrt(square), slope, eps);
  return select(square > F(0.0f), direction / root, F(0.0f));
}

/// Exponential averages of the gradient and of its square, in slots 0 and 1.
struct averages {
  float beta1, fresh1, beta2, fresh2;

  /// A first moment without a second one is dropped.
  template <class F, int N>
  MEMFIT_HD void take(F const& g, F (&s)[N]) const {
    s[1] = fma(beta2, s[1], (fresh2 * g) * g);
    s[0] = select(s[1] > F(0.0f), fma(beta1, s[0], fresh1 * g), F(0.0f));
  }

  /// Makes these the averages of a part of a window.
  MEMFIT_HD void fold(window_part const& w) {
    if (w.number != 0) beta1 = beta2 = 1.0f;
    fresh1 *= w.share;
    fresh2 *= w.share;
  }
};

template <class Rule>
MEMFIT_HD averages averages_of(Rule const& r) {
  return {static_cast<float>(r.beta1), static_cast<float>(1.0 - r.beta1),
          static_cast<float>(r.beta2), static_cast<float>(1.0 - r.beta2)};
}

/// What the decoupled decay of a step leaves of a parameter.
template <class Rule>
MEMFIT_HD float kept_by_decay(Rule const& r) {
  return static_cast<float>(1.0 - product(r.lr, r.weight_decay));
}

inline constexpr slot exp_avg{"exp_avg", range::any};
inline constexpr slot exp_avg_sq{"exp_avg_sq", range::non_negative};

/// Hyper-parameters of rules with two averages, eps and nothing more.
template <class Rule>
hyperparameter_list averages_list(Rule& r) {
  return {{"lr", r.lr},
          {"beta1", r.beta1},
          {"beta2", r.beta2},
          {"eps", r.eps},
          {"weight_decay", r.weight_decay}};
}

/// The first hyper-parameter outside its range of those that every rule has; decay of either kind.
template <class Rule>
char const* step_invalid(Rule const& r) {
  if (!finite_non_negative(r.lr)) return "lr";
  if (!finite_non_negative(r.weight_decay) || !finite_non_negative(r.lr * r.weight_decay))
    return "weight_decay";
  return nullptr;
}

/// The same for rules with two averages and eps.
template <class Rule>
char const* averages_invalid(Rule const& r) {
  if (!decay_rate(r.beta1)) return "beta1";
  if (!decay_rate(r.beta2)) return "beta2";
  if (!finite_non_negative(r.lr / (1.0 - r.beta1))) return "lr";
  if (!finite_non_negative(r.eps)) return "eps";
  return step_invalid(r);
}

}  // namespace memfit::detail
