// Rules that scale each parameter's step by its own second moment: adam and adamw.
// Used as optimizer<adamw, …> and optimizer<adam, …>. Both fold the gradients of micro-batches.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/core/scalar.hpp"
#include "memfit/rule/moments.hpp"

namespace memfit {

namespace detail {

/// What Adam and its relatives share: moments, bias correction and the step; they differ in the
/// decay and in what is under the root.
struct adaptive_constants : averages {
  float step_size;                 // lr / correction1
  float inverse_root_correction2;  // 1 / sqrt(correction2)
  float eps;
  double correction1, correction2;  // 1 - beta^step

  /// Where the step along the first moment brings `kept`, the parameter as far as decay leaves it.
  template <class F>
  MEMFIT_HD F stepped(F const& kept, F const& first, F const& second) const {
    return fma(-step_size, over_root(first, second, inverse_root_correction2, eps), kept);
  }
  MEMFIT_HD void fold(window_part const& w) {
    averages::fold(w);
    if (!w.last) step_size = 0.0f;
  }
};

template <class Rule>
MEMFIT_HD adaptive_constants adaptive_at(Rule const& r, std::int64_t step) {
  double const correction1 = 1.0 - power(r.beta1, step);
  double const correction2 = 1.0 - power(r.beta2, step);
  return {averages_of(r),
          static_cast<float>(r.lr / correction1),
          static_cast<float>(1.0 / sqrt(correction2)),
          static_cast<float>(r.eps),
          correction1,
          correction2};
}

}  // namespace detail

/// Adam (arXiv 1412.6980) with coupled decay: weight_decay p joins the gradient. PyTorch's
/// placement of eps: beside the root of the corrected second moment.
struct adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;

  static constexpr char const* name = "adam";
  static constexpr std::array<slot, 2> slots{detail::exp_avg, detail::exp_avg_sq};

  struct constants : detail::adaptive_constants {
    float weight_decay;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[2]) const {
      this->take(F(fma(weight_decay, p, g)), s);
      p = this->stepped(p, s[0], s[1]);
    }
    MEMFIT_HD constants part(window_part const& w) const {
      constants k = *this;
      k.fold(w);
      return k;
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    return {detail::adaptive_at(*this, step), static_cast<float>(weight_decay)};
  }
  hyperparameter_list hyperparameters() { return detail::averages_list(*this); }
  char const* invalid() const { return detail::averages_invalid(*this); }
};

/// AdamW (arXiv 1711.05101): Adam with decoupled decay, p shrinks by lr weight_decay p.
struct adamw {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;

  static constexpr char const* name = "adamw";
  static constexpr std::array<slot, 2> slots{detail::exp_avg, detail::exp_avg_sq};

  struct constants : detail::adaptive_constants {
    float keep;  // 1 - lr weight_decay
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[2]) const {
      this->take(g, s);
      p = this->stepped(F(p * keep), s[0], s[1]);
    }
    MEMFIT_HD constants part(window_part const& w) const {
      constants k = *this;
      k.fold(w);
      if (!w.last) k.keep = 1.0f;
      return k;
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    return {detail::adaptive_at(*this, step), detail::kept_by_decay(*this)};
  }
  hyperparameter_list hyperparameters() { return detail::averages_list(*this); }
  char const* invalid() const { return detail::averages_invalid(*this); }
};

}  // namespace memfit
