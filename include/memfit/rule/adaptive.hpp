// Rules that scale each parameter's step by its own second moment: adam and adamw.
// Used as optimizer<adamw, …> and optimizer<adam, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/core/scalar.hpp"
#include "memfit/rule/concept.hpp"

namespace memfit {

namespace detail {

/// What adam and adamw share: moments, bias correction and the step; they differ in the decay.
struct adaptive_constants {
  float beta1, fresh1, beta2, fresh2;
  float step_size;                 // lr / correction1
  float inverse_root_correction2;  // 1 / sqrt(correction2)
  float eps;
  double correction1, correction2;  // 1 - beta^step

  /// Updates the moments and moves `kept`, the parameter as far as decay leaves it. A first moment
  /// without a second one is dropped, so that nothing is ever divided by eps alone.
  template <class F>
  MEMFIT_HD F moved(F const& kept, F const& g, F (&s)[2]) const {
    s[1] = fma(beta2, s[1], (fresh2 * g) * g);
    auto const seen = s[1] > F(0.0f);
    s[0] = select(seen, fma(beta1, s[0], fresh1 * g), F(0.0f));
    F const root = fma(sqrt(s[1]), inverse_root_correction2, eps);
    return fma(-step_size, select(seen, s[0] / root, F(0.0f)), kept);
  }
};

template <class Rule>
MEMFIT_HD adaptive_constants adaptive_at(Rule const& r, std::int64_t step) {
  double const correction1 = 1.0 - power(r.beta1, step);
  double const correction2 = 1.0 - power(r.beta2, step);
  return {static_cast<float>(r.beta1),
          static_cast<float>(1.0 - r.beta1),
          static_cast<float>(r.beta2),
          static_cast<float>(1.0 - r.beta2),
          static_cast<float>(r.lr / correction1),
          static_cast<float>(1.0 / sqrt(correction2)),
          static_cast<float>(r.eps),
          correction1,
          correction2};
}

template <class Rule>
char const* adaptive_invalid(Rule const& r) {
  if (!decay_rate(r.beta1)) return "beta1";
  if (!decay_rate(r.beta2)) return "beta2";
  if (!finite_non_negative(r.lr / (1.0 - r.beta1))) return "lr";
  if (!finite_non_negative(r.eps)) return "eps";
  if (!finite_non_negative(r.weight_decay) || !finite_non_negative(r.lr * r.weight_decay))
    return "weight_decay";
  return nullptr;
}

inline constexpr std::array<slot, 2> adaptive_slots{
    {{"exp_avg", range::any}, {"exp_avg_sq", range::non_negative}}};

}  // namespace detail

/// Adam (arXiv 1412.6980) with coupled decay: weight_decay p joins the gradient. PyTorch's
/// placement of eps: beside the root of the corrected second moment.
struct adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;

  static constexpr auto slots = detail::adaptive_slots;

  struct constants : detail::adaptive_constants {
    float weight_decay;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[2]) const {
      p = this->moved(p, F(fma(weight_decay, p, g)), s);
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    return {detail::adaptive_at(*this, step), static_cast<float>(weight_decay)};
  }
  char const* invalid() const { return detail::adaptive_invalid(*this); }
};

/// AdamW (arXiv 1711.05101): Adam with decoupled decay, p shrinks by lr weight_decay p.
struct adamw {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;

  static constexpr auto slots = detail::adaptive_slots;

  struct constants : detail::adaptive_constants {
    float keep;  // 1 - lr weight_decay
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[2]) const {
      p = this->moved(F(p * keep), g, s);
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    return {detail::adaptive_at(*this, step), static_cast<float>(1.0 - product(lr, weight_decay))};
  }
  char const* invalid() const { return detail::adaptive_invalid(*this); }
};

}  // namespace memfit
