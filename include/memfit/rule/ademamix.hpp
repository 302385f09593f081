// Adam with a second, slow average of the gradient: rule ademamix.
// Used as optimizer<ademamix, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/core/scalar.hpp"
#include "memfit/rule/moments.hpp"

namespace memfit {

/// AdEMAMix (arXiv 2409.03137) with decoupled decay: Adam's direction plus alpha times an average
/// with beta3, which has no correction. Over the first alpha_warmup steps alpha grows linearly from
/// 0, over the first beta3_warmup steps the half-life of beta3 does so from that of beta1; 0 steps
/// for no warm-up. The paper has alpha from 4 to 10, and warms up over the whole run.
struct ademamix {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double beta3 = 0.9999;
  double alpha = 5.0;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  std::int64_t alpha_warmup = 0;
  std::int64_t beta3_warmup = 0;

  static constexpr char const* name = "ademamix";
  static constexpr std::array<slot, 3> slots{slot{"exp_avg_fast", range::any}, detail::exp_avg_sq,
                                             slot{"exp_avg_slow", range::any}};

  struct constants : detail::averages {
    float fresh3, lr, alpha, inverse_correction1, inverse_root_correction2, eps;
    float keep;  // 1 - lr weight_decay
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[3]) const {
      this->take(g, s);
      s[2] = select(s[1] > F(0.0f), fma(fresh3, g - s[2], s[2]), F(0.0f));
      F const mixed = fma(alpha, s[2], s[0] * inverse_correction1);
      p = fma(-lr, detail::over_root(mixed, s[1], inverse_root_correction2, eps), F(p * keep));
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    return {detail::averages_of(*this),
            static_cast<float>(1.0 - beta3_at(step)),
            static_cast<float>(lr),
            static_cast<float>(product(alpha, warmed(step, alpha_warmup))),
            static_cast<float>(1.0 / (1.0 - power(beta1, step))),
            static_cast<float>(1.0 / sqrt(1.0 - power(beta2, step))),
            static_cast<float>(eps),
            detail::kept_by_decay(*this)};
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr},
            {"beta1", beta1},
            {"beta2", beta2},
            {"beta3", beta3},
            {"alpha", alpha},
            {"eps", eps},
            {"weight_decay", weight_decay},
            {"alpha_warmup", alpha_warmup},
            {"beta3_warmup", beta3_warmup}};
  }
  char const* invalid() const {
    if (!detail::decay_rate(beta3)) return "beta3";
    if (!detail::finite_non_negative(alpha)) return "alpha";
    if (alpha_warmup < 0) return "alpha_warmup";
    if (beta3_warmup < 0) return "beta3_warmup";
    return detail::averages_invalid(*this);
  }

 private:
  /// The part of a warm-up that is done, up to 1.
  MEMFIT_HD static double warmed(std::int64_t step, std::int64_t warmup) {
    return step < warmup ? static_cast<double>(step) / static_cast<double>(warmup) : 1.0;
  }
  /// A half-life in units of -1 / ln 2, which a linear warm-up does not see.
  MEMFIT_HD static double half_life(double beta) {
    return beta > 1e-300 ? 1.0 / logarithm(beta) : 0.0;
  }
  MEMFIT_HD double beta3_at(std::int64_t step) const {
    double const done = warmed(step, beta3_warmup);
    if (done == 1.0) return beta3;
    double const life = product(1.0 - done, half_life(beta1)) + product(done, half_life(beta3));
    double const beta = life < 0.0 ? exponential(1.0 / life) : 0.0;
    return beta < beta3 ? beta : beta3;
  }
};

}  // namespace memfit
