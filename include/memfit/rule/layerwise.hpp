// Rules whose step is as long as its tensor is large: lamb and lars.
// Used as optimizer<lamb, …> and optimizer<lars, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/core/scalar.hpp"
#include "memfit/rule/moments.hpp"

namespace memfit {

namespace detail {

/// The interval that a trust ratio is brought to.
struct trust_bounds {
  double least, most;

  /// Where a norm is zero, there is nothing to compare: 1.
  MEMFIT_HD double ratio(layer_norms const& n, double above, double below) const {
    double const r = n.parameter > 0.0 && n.direction > 0.0 ? above / below : 1.0;
    return r < least ? least : r > most ? most : r;
  }
};

template <class Rule>
char const* trust_invalid(Rule const& r) {
  if (!finite_non_negative(r.min_trust)) return "min_trust";
  if (!(r.max_trust >= r.min_trust)) return "max_trust";
  return nullptr;
}

}  // namespace detail

/// LAMB (arXiv 1904.00962): Adam's direction with the decay in it, u = m / (sqrt(v) + eps) +
/// weight_decay p after bias correction, p -= lr ratio u, where ratio = |p| / |u| over the tensor.
///
/// Where a norm is zero the ratio is 1; then it is brought to [min_trust, max_trust]. These are the
/// paper's phi = identity and, at max_trust = 1, the clipped ratio of other libraries; 1 for both
/// turns the ratio off, as is usual for tensors of biases and gains. Defaults are those of NVIDIA's
/// and timm's LAMB, but gradients are not clipped: see clip_norm. Norms are of what the executor
/// has: of a part where a tensor is sharded, whose ratio is then another one. A step reads the
/// parameter, gradient and moments twice.
struct lamb {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 1e-2;
  double min_trust = 0.0;
  double max_trust = __builtin_huge_val();

  static constexpr char const* name = "lamb";
  static constexpr std::array<slot, 2> slots{detail::exp_avg, detail::exp_avg_sq};

  struct constants : detail::averages {
    float inverse_correction1;       // 1 / (1 - beta1^step)
    float inverse_root_correction2;  // 1 / sqrt(1 - beta2^step)
    float eps, weight_decay;
    float step_size;  // lr ratio
    double exact_lr;
    detail::trust_bounds trust;

    template <class F>
    MEMFIT_HD F direction(F const& p, F const& g, F (&s)[2]) const {
      this->take(g, s);
      F const adapted = detail::over_root(s[0], s[1], inverse_root_correction2, eps);
      return fma(weight_decay, p, F(inverse_correction1 * adapted));
    }
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[2]) const {
      p = fma(-step_size, direction(p, g, s), p);
    }
    MEMFIT_HD constants with(layer_norms const& n) const {
      constants k = *this;
      k.step_size = static_cast<float>(exact_lr * trust.ratio(n, n.parameter, n.direction));
      return k;
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    return {detail::averages_of(*this),
            static_cast<float>(1.0 / (1.0 - power(beta1, step))),
            static_cast<float>(1.0 / sqrt(1.0 - power(beta2, step))),
            static_cast<float>(eps),
            static_cast<float>(weight_decay),
            static_cast<float>(lr),
            lr,
            {min_trust, max_trust}};
  }
  char const* invalid() const {
    if (char const* const bad = detail::trust_invalid(*this)) return bad;
    return detail::averages_invalid(*this);
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr},
            {"beta1", beta1},
            {"beta2", beta2},
            {"eps", eps},
            {"weight_decay", weight_decay},
            {"min_trust", min_trust},
            {"max_trust", max_trust}};
  }
};

/// LARS (arXiv 1708.03888): momentum on gradients that are as large as their tensor allows, with
/// coupled decay; buffer = momentum buffer + ratio (g + weight_decay p), p -= lr buffer, where
/// ratio = trust_coefficient |p| / (|g| + weight_decay |p| + eps) over the tensor. The rate stands
/// outside the buffer, as in PyTorch's momentum, which is the paper's step while lr stays the same.
///
/// Where a norm is zero the ratio is 1; then it is brought to [min_trust, max_trust]: 1 for both is
/// plain momentum, as is usual for tensors of biases and gains, and lr = 1 with a rate for
/// max_trust is LARS clipped at that rate. Momentum and trust coefficient are the paper's, eps and
/// lr are timm's. Norms are of what the executor has: of a part where a tensor is sharded, whose
/// ratio is then another one. A step reads the parameter and the gradient twice.
struct lars {
  double lr = 1.0;
  double momentum = 0.9;
  double weight_decay = 0.0;
  double trust_coefficient = 1e-3;
  double eps = 1e-8;
  double min_trust = 0.0;
  double max_trust = __builtin_huge_val();

  static constexpr char const* name = "lars";
  static constexpr std::array<slot, 1> slots{{{"momentum_buffer", range::any}}};

  struct constants {
    float lr, momentum, weight_decay, ratio;
    double trust_coefficient, eps, exact_decay;
    detail::trust_bounds trust;

    template <class F>
    MEMFIT_HD F direction(F const&, F const& g) const {
      return g;
    }
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      s[0] = fma(momentum, s[0], ratio * fma(weight_decay, p, g));
      p = fma(-lr, s[0], p);
    }
    MEMFIT_HD constants with(layer_norms const& n) const {
      constants k = *this;
      double const below = n.direction + product(exact_decay, n.parameter) + eps;
      k.ratio = static_cast<float>(trust.ratio(n, trust_coefficient * n.parameter, below));
      return k;
    }
  };

  MEMFIT_HD constants at(std::int64_t) const {
    return {static_cast<float>(lr),
            static_cast<float>(momentum),
            static_cast<float>(weight_decay),
            1.0f,
            trust_coefficient,
            eps,
            weight_decay,
            {min_trust, max_trust}};
  }
  char const* invalid() const {
    if (!detail::finite_non_negative(momentum)) return "momentum";
    if (!detail::finite_non_negative(trust_coefficient)) return "trust_coefficient";
    if (!detail::finite_non_negative(eps)) return "eps";
    if (char const* const bad = detail::trust_invalid(*this)) return bad;
    return detail::step_invalid(*this);
  }
  hyperparameter_list hyperparameters() {
    return {{"lr", lr},
            {"momentum", momentum},
            {"weight_decay", weight_decay},
            {"trust_coefficient", trust_coefficient},
            {"eps", eps},
            {"min_trust", min_trust},
            {"max_trust", max_trust}};
  }
};

}  // namespace memfit
