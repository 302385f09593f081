// Adam whose step never grows where gradients become small: rules amsgrad and amsgradw.
// Used as optimizer<amsgradw, …> and optimizer<amsgrad, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/rule/adaptive.hpp"

namespace memfit {

namespace detail {

struct amsgrad_constants : adaptive_constants {
  /// Adam's step with the largest second moment so far, in slot 2, in the latest one's place. An
  /// average exceeds all earlier ones only where the new square does: asked for, this keeps a
  /// second moment that grew by being rounded out of the maximum.
  template <class F>
  MEMFIT_HD F stepped_below_maximum(F const& kept, F const& g, F (&s)[3]) const {
    take(g, s);
    F const square = g * g;
    F const reached = select(square < s[1], square, s[1]);
    s[2] = select(reached > s[2], reached, s[2]);
    return stepped(kept, s[0], s[2]);
  }
};

inline constexpr std::array<slot, 3> amsgrad_slots{
    exp_avg, exp_avg_sq, slot{"max_exp_avg_sq", range::non_negative, scaling::power_of_two}};

}  // namespace detail

/// AMSGrad (arXiv 1904.09237) as PyTorch's Adam has it, with coupled decay: the maximum is that of
/// the second moment before its correction. In 8 bits it is never above the largest square by more
/// than half a code. In float8 it stays at its code for ever; in other formats it may move by half
/// a code with every doubling of its block's largest.
struct amsgrad {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;

  static constexpr char const* name = "amsgrad";
  static constexpr auto slots = detail::amsgrad_slots;

  struct constants : detail::amsgrad_constants {
    float weight_decay;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[3]) const {
      p = this->stepped_below_maximum(p, F(fma(weight_decay, p, g)), s);
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    return {{detail::adaptive_at(*this, step)}, static_cast<float>(weight_decay)};
  }
  hyperparameter_list hyperparameters() { return detail::averages_list(*this); }
  char const* invalid() const { return detail::averages_invalid(*this); }
};

/// AMSGrad with decoupled decay, as PyTorch's AdamW has it: p shrinks by lr weight_decay p.
struct amsgradw {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;

  static constexpr char const* name = "amsgradw";
  static constexpr auto slots = detail::amsgrad_slots;

  struct constants : detail::amsgrad_constants {
    float keep;  // 1 - lr weight_decay
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[3]) const {
      p = this->stepped_below_maximum(F(p * keep), g, s);
    }
  };

  MEMFIT_HD constants at(std::int64_t step) const {
    return {{detail::adaptive_at(*this, step)}, detail::kept_by_decay(*this)};
  }
  hyperparameter_list hyperparameters() { return detail::averages_list(*this); }
  char const* invalid() const { return detail::averages_invalid(*this); }
};

}  // namespace memfit
