// Adam that waits with its second moment until that can be trusted: rule radam.
// Used as optimizer<radam, …>.
#pragma once

#include <array>
#include <cstdint>

#include "memfit/rule/adaptive.hpp"

namespace memfit {

/// RAdam (arXiv 1908.03265) as PyTorch has it, with coupled decay: while the second moment is an
/// average of five gradients or fewer, p -= lr times the corrected first moment alone, afterwards
/// Adam's step, rectified; eps stands beside the root of the second moment before its correction.
struct radam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;

  static constexpr char const* name = "radam";
  static constexpr auto slots = adam::slots;

  using constants = adam::constants;

  MEMFIT_HD constants at(std::int64_t step) const {
    auto c = detail::adaptive_at(*this, step);
    double const longest = 2.0 / (1.0 - beta2) - 1.0;
    auto const twice = static_cast<double>(2 * step);
    double const length = longest - product(twice, power(beta2, step)) / c.correction2;
    if (length > 5.0) {
      double const rectifier = sqrt((length - 4.0) * (length - 2.0) * longest /
                                    ((longest - 4.0) * (longest - 2.0) * length));
      c.step_size = static_cast<float>(lr * rectifier / c.correction1);
      c.eps = static_cast<float>(eps / sqrt(c.correction2));
    } else {
      c.inverse_root_correction2 = 0.0f;
      c.eps = 1.0f;
    }
    return {c, static_cast<float>(weight_decay)};
  }
  hyperparameter_list hyperparameters() { return detail::averages_list(*this); }
  char const* invalid() const { return detail::averages_invalid(*this); }
};

}  // namespace memfit
