// The update rules as their papers and PyTorch's documentation state them, plainly, on one element.
// Used with double against PyTorch's numbers and with `tracked` against memfit; shares no code with
// it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace reference {

/// Parameter and moments of one element.
template <class T>
struct element {
  T p{};
  std::array<T, 2> s{};
};

/// Stochastic gradient descent, with L2 decay.
struct sgd {
  double lr = 0, weight_decay = 0;
  static constexpr int slots = 0;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t) const {
    g = g + T(weight_decay) * e.p;
    e.p = e.p - T(lr) * g;
  }
};

/// Heavy ball as PyTorch has it: the first step fills the buffer with the gradient.
struct momentum {
  double lr = 0, beta = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  static constexpr int slots = 1;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step) const {
    g = g + T(weight_decay) * e.p;
    e.s[0] = step == 1 ? g : T(beta) * e.s[0] + T(1 - dampening) * g;
    e.p = e.p - T(lr) * (nesterov ? g + T(beta) * e.s[0] : e.s[0]);
  }
};

/// Kingma and Ba 2015 with L2 decay, or Loshchilov and Hutter 2019 with decoupled decay.
struct adam {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  bool decoupled = false;
  static constexpr int slots = 2;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step) const {
    using std::sqrt;
    if (decoupled) {
      e.p = e.p * T(1 - lr * weight_decay);
    } else {
      g = g + T(weight_decay) * e.p;
    }
    auto& [m, v] = e.s;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * (g * g);
    double const t = static_cast<double>(step);
    T const root = sqrt(v) / T(std::sqrt(1 - std::pow(beta2, t)));
    e.p = e.p - T(lr / (1 - std::pow(beta1, t))) * (m / (root + T(eps)));
  }
};

}  // namespace reference
