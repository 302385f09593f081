// Gradients relative to the root of their squares, averaged or summed: rules rmsprop and adagrad.
// Used as optimizer<rmsprop, …> and optimizer<adagrad, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/rule/moments.hpp"

namespace memfit {

/// RMSprop (Tieleman and Hinton, 2012; arXiv 1308.0850) as PyTorch's defaults have it, with coupled
/// decay: no momentum, and not centered, whose root vanishes where gradients are steady.
struct rmsprop {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;

  static constexpr char const* name = "rmsprop";
  static constexpr std::array<slot, 1> slots{{{"square_avg", range::non_negative}}};

  struct constants {
    float lr, alpha, fresh, eps, weight_decay;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      g = fma(weight_decay, p, g);
      s[0] = fma(alpha, s[0], (fresh * g) * g);
      p = fma(-lr, detail::over_root(g, s[0], 1.0f, eps), p);
    }
  };

  MEMFIT_HD constants at(std::int64_t) const {
    return {static_cast<float>(lr), static_cast<float>(alpha), static_cast<float>(1.0 - alpha),
            static_cast<float>(eps), static_cast<float>(weight_decay)};
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr}, {"alpha", alpha}, {"eps", eps}, {"weight_decay", weight_decay}};
  }
  char const* invalid() const {
    if (!detail::decay_rate(alpha)) return "alpha";
    if (!detail::finite_non_negative(eps)) return "eps";
    return detail::step_invalid(*this);
  }
};

/// Adagrad (Duchi, Hazan and Singer, JMLR 12, 2011) as PyTorch has it, with coupled decay; the rate
/// of step t is lr / (1 + (t - 1) lr_decay). PyTorch's initial_accumulator_value is added under the
/// root, not kept: `sum` is that of squares alone. No element moves by more than lr. In 8 bits a
/// sum that grows by less than half a code in a step keeps its part of its block's largest sum
/// instead: exact where the gradients of a block grow and shrink together.
struct adagrad {
  double lr = 1e-2;
  double lr_decay = 0.0;
  double eps = 1e-10;
  double weight_decay = 0.0;
  double initial_accumulator = 0.0;

  static constexpr char const* name = "adagrad";
  static constexpr std::array<slot, 1> slots{{{"sum", range::non_negative}}};

  struct constants {
    float lr, eps, weight_decay, initial;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      g = fma(weight_decay, p, g);
      s[0] = fma(g, g, s[0]);
      p = fma(-lr, detail::over_root(g, F(s[0] + initial), 1.0f, eps), p);
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    double const decay = 1.0 + product(static_cast<double>(step - 1), lr_decay);
    return {static_cast<float>(lr / decay), static_cast<float>(eps),
            static_cast<float>(weight_decay), static_cast<float>(initial_accumulator)};
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr},
            {"lr_decay", lr_decay},
            {"eps", eps},
            {"weight_decay", weight_decay},
            {"initial_accumulator", initial_accumulator}};
  }
  char const* invalid() const {
    if (!detail::finite_non_negative(lr_decay)) return "lr_decay";
    if (!detail::finite_non_negative(initial_accumulator)) return "initial_accumulator";
    if (!detail::finite_non_negative(eps)) return "eps";
    return detail::step_invalid(*this);
  }
};

}  // namespace memfit
