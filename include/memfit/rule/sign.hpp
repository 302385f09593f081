// Steps of one length whatever the gradient's size, along signs: rules lion and signum.
// Used as optimizer<lion, …> and optimizer<signum, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/rule/moments.hpp"

namespace memfit {

namespace detail {

/// -1, 0 or 1.
template <class F>
MEMFIT_HD inline F sign(F const& x) {
  return select(x == F(0.0f), F(0.0f), with_sign_of(x, F(1.0f)));
}

}  // namespace detail

/// Lion (arXiv 2302.06675) with decoupled decay, p shrinks by lr weight_decay p: the sign of an
/// average with beta1, of which an average with beta2 is kept.
struct lion {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;

  static constexpr char const* name = "lion";
  static constexpr std::array<slot, 1> slots{detail::exp_avg};

  struct constants : detail::averages {
    float lr;
    float keep;  // 1 - lr weight_decay
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      F const direction = detail::sign(F(fma(beta1, s[0], fresh1 * g)));
      s[0] = fma(beta2, s[0], fresh2 * g);
      p = fma(-lr, direction, F(p * keep));
    }
  };

  MEMFIT_HD constants at(std::int64_t) const {
    return {detail::averages_of(*this), static_cast<float>(lr), detail::kept_by_decay(*this)};
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr}, {"beta1", beta1}, {"beta2", beta2}, {"weight_decay", weight_decay}};
  }
  char const* invalid() const {
    if (!detail::decay_rate(beta1)) return "beta1";
    if (!detail::decay_rate(beta2)) return "beta2";
    return detail::step_invalid(*this);
  }
};

/// Signum (arXiv 1802.04434), signSGD where momentum is 0, with decoupled decay, p shrinks by
/// lr weight_decay p: the sign of the average gradient.
struct signum {
  double lr = 1e-4;
  double momentum = 0.9;
  double weight_decay = 0.0;

  static constexpr char const* name = "signum";
  static constexpr std::array<slot, 1> slots{{{"momentum_buffer", range::any}}};

  struct constants {
    float lr, momentum, fresh;
    float keep;  // 1 - lr weight_decay
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      s[0] = fma(momentum, s[0], fresh * g);
      p = fma(-lr, detail::sign(s[0]), F(p * keep));
    }
  };

  MEMFIT_HD constants at(std::int64_t) const {
    return {static_cast<float>(lr), static_cast<float>(momentum),
            static_cast<float>(1.0 - momentum), detail::kept_by_decay(*this)};
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr}, {"momentum", momentum}, {"weight_decay", weight_decay}};
  }
  char const* invalid() const {
    if (!detail::decay_rate(momentum)) return "momentum";
    return detail::step_invalid(*this);
  }
};

}  // namespace memfit
