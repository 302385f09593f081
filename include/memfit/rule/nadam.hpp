// Adam with Nesterov's look-ahead: rule nadam.
// Used as optimizer<nadam, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/core/scalar.hpp"
#include "memfit/rule/moments.hpp"

namespace memfit {

/// NAdam (Dozat, "Incorporating Nesterov Momentum into Adam", ICLR workshop 2016) as PyTorch has
/// it, with coupled decay: the momentum of step t is beta1 (1 - 0.96^(t momentum_decay) / 2).
struct nadam {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum_decay = 4e-3;

  static constexpr char const* name = "nadam";
  static constexpr std::array<slot, 2> slots{detail::exp_avg, detail::exp_avg_sq};

  struct constants : detail::averages {
    float lr, from_moment, from_gradient, inverse_root_correction2, eps, weight_decay;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[2]) const {
      g = fma(weight_decay, p, g);
      this->take(g, s);
      F const ahead = fma(from_moment, s[0], from_gradient * g);
      p = fma(-lr, detail::over_root(ahead, s[1], inverse_root_correction2, eps), p);
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    double const next = momentum_with(fade_at(step + 1)), so_far = momenta_until(step);
    return {detail::averages_of(*this),
            static_cast<float>(lr),
            static_cast<float>(next / (1.0 - product(so_far, next))),
            static_cast<float>((1.0 - momentum_with(fade_at(step))) / (1.0 - so_far)),
            static_cast<float>(1.0 / sqrt(1.0 - power(beta2, step))),
            static_cast<float>(eps),
            static_cast<float>(weight_decay)};
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr},
            {"beta1", beta1},
            {"beta2", beta2},
            {"eps", eps},
            {"weight_decay", weight_decay},
            {"momentum_decay", momentum_decay}};
  }
  char const* invalid() const {
    if (!detail::finite_non_negative(momentum_decay)) return "momentum_decay";
    return detail::averages_invalid(*this);
  }

 private:
  MEMFIT_HD double fade_at(std::int64_t step) const {
    constexpr double log_of_096 = -0x1.4e69ed6d80eb3p-5;
    return exponential(product(product(static_cast<double>(step), momentum_decay), log_of_096));
  }
  MEMFIT_HD double momentum_with(double fade) const {
    return product(beta1, 1.0 - product(0.5, fade));
  }
  /// The product of all momenta so far. It ends at a factor below which it or the fade no longer
  /// counts, in at most 3,000 factors whatever the hyper-parameters are.
  MEMFIT_HD double momenta_until(std::int64_t step) const {
    constexpr double nothing = 0x1p-54;
    double const rate = fade_at(1);
    double result = 1.0, fade = rate;
    for (std::int64_t t = 1; t <= step && result > nothing; ++t, fade = product(fade, rate)) {
      if (fade < nothing) return product(result, power(beta1, step - t + 1));
      result = product(result, momentum_with(fade));
    }
    return result;
  }
};

}  // namespace memfit
