// Gradient descent without and with momentum: rules sgd and momentum.
// Used as optimizer<sgd, …> and optimizer<momentum, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/rule/concept.hpp"

namespace memfit {

/// Plain gradient descent with coupled decay, p -= lr (g + weight_decay p); keeps no moment.
struct sgd {
  double lr = 1e-3;
  double weight_decay = 0.0;

  static constexpr char const* name = "sgd";
  static constexpr std::array<slot, 0> slots{};

  struct constants {
    float lr, weight_decay;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g) const {
      p = fma(-lr, fma(weight_decay, p, g), p);
    }
  };

  MEMFIT_HD constants at(std::int64_t) const {
    return {static_cast<float>(lr), static_cast<float>(weight_decay)};
  }
  hyperparameter_list hyperparameters() { return {{"lr", lr}, {"weight_decay", weight_decay}}; }
  char const* invalid() const {
    if (!detail::finite_non_negative(lr)) return "lr";
    if (!detail::finite_non_negative(weight_decay)) return "weight_decay";
    return nullptr;
  }
};

/// Gradient descent with momentum (Polyak 1964; Nesterov's form after Sutskever et al. 2013) in
/// PyTorch's reading: buffer = momentum buffer + (1 - dampening) g, in the first step g itself;
/// coupled decay.
struct momentum {
  double lr = 1e-3;
  double momentum = 0.9;
  double dampening = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;

  static constexpr char const* name = "momentum";
  static constexpr std::array<slot, 1> slots{{{"momentum_buffer", range::any}}};

  struct constants {
    float lr, momentum, fresh, weight_decay;
    float from_buffer, from_gradient;  // the direction: buffer alone, or Nesterov's look-ahead
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      g = fma(weight_decay, p, g);
      s[0] = fma(momentum, s[0], fresh * g);
      p = fma(-lr, fma(from_buffer, s[0], from_gradient * g), p);
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    double const fresh = step == 1 ? 1.0 : 1.0 - dampening;
    return {static_cast<float>(lr),
            static_cast<float>(momentum),
            static_cast<float>(fresh),
            static_cast<float>(weight_decay),
            static_cast<float>(nesterov ? momentum : 1.0),
            nesterov ? 1.0f : 0.0f};
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr},
            {"momentum", momentum},
            {"dampening", dampening},
            {"nesterov", nesterov},
            {"weight_decay", weight_decay}};
  }
  char const* invalid() const {
    if (!detail::finite_non_negative(lr)) return "lr";
    if (!detail::finite_non_negative(momentum)) return "momentum";
    if (!(dampening >= 0.0 && dampening <= 1.0)) return "dampening";
    if (!detail::finite_non_negative(weight_decay)) return "weight_decay";
    return nullptr;
  }
};

}  // namespace memfit
