// The update rules as their papers and PyTorch's documentation state them, plainly, on one element
// or, where they look at a whole tensor, on that.
// Used with double against PyTorch's numbers and with `tracked` against memfit; shares no code with
// it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace reference {

/// Parameter and moments of one element.
template <class T>
struct element {
  T p{};
  std::array<T, 3> s{};
};

/// Stochastic gradient descent, with L2 decay.
struct sgd {
  double lr = 0, weight_decay = 0;

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

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step) const {
    g = g + T(weight_decay) * e.p;
    e.s[0] = step == 1 ? g : T(beta) * e.s[0] + T(1 - dampening) * g;
    e.p = e.p - T(lr) * (nesterov ? g + T(beta) * e.s[0] : e.s[0]);
  }
};

inline double larger(double a, double b) {
  return std::max(a, b);
}
inline double smaller(double a, double b) {
  return std::min(a, b);
}
inline double sign(double a) {
  return a > 0 ? 1 : a < 0 ? -1 : 0;
}

/// Kingma and Ba 2015 with L2 decay, or Loshchilov and Hutter 2019 with decoupled decay; of Reddi,
/// Kale and Kumar 2018 where a maximum of the second moment is kept.
struct adam {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  bool decoupled = false, maximum = false;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step) const {
    using std::sqrt;
    if (decoupled) {
      e.p = e.p * T(1 - lr * weight_decay);
    } else {
      g = g + T(weight_decay) * e.p;
    }
    auto& [m, v, most] = e.s;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * (g * g);
    // Where most is a maximum indeed, v exceeds it only where g * g does.
    if (maximum) most = larger(most, smaller(v, g * g));
    double const t = static_cast<double>(step);
    T const root = sqrt(maximum ? most : v) / T(std::sqrt(1 - std::pow(beta2, t)));
    e.p = e.p - T(lr / (1 - std::pow(beta1, t))) * (m / (root + T(eps)));
  }
};

/// Dozat 2016 with the momentum schedule and the L2 decay of PyTorch.
struct nadam {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0, momentum_decay = 0;

  double momentum(double t) const { return beta1 * (1 - 0.5 * std::pow(0.96, t * momentum_decay)); }
  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step) const {
    using std::sqrt;
    double const t = static_cast<double>(step);
    double so_far = 1;
    for (std::int64_t i = 1; i <= step && so_far > 1e-20; ++i)
      so_far *= momentum(static_cast<double>(i));
    double const next = momentum(t + 1);
    g = g + T(weight_decay) * e.p;
    auto& [m, v, unused] = e.s;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * (g * g);
    T const root = sqrt(v) / T(std::sqrt(1 - std::pow(beta2, t))) + T(eps);
    T const ahead = T(next / (1 - so_far * next)) * m + T((1 - momentum(t)) / (1 - so_far)) * g;
    e.p = e.p - T(lr) * (ahead / root);
  }
};

/// Liu et al. 2020 with the placement of eps and the L2 decay of PyTorch.
struct radam {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step) const {
    using std::sqrt;
    double const t = static_cast<double>(step);
    g = g + T(weight_decay) * e.p;
    auto& [m, v, unused] = e.s;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * (g * g);
    double const correction2 = 1 - std::pow(beta2, t);
    double const all = 2 / (1 - beta2) - 1;
    double const now = all - 2 * t * std::pow(beta2, t) / correction2;
    T const first = T(lr / (1 - std::pow(beta1, t))) * m;
    if (now <= 5) {
      e.p = e.p - first;
      return;
    }
    double const r =
        std::sqrt((now - 4) * (now - 2) * all / ((all - 4) * (all - 2) * now) * correction2);
    e.p = e.p - T(r) * (first / (sqrt(v) + T(eps)));
  }
};

/// Pagliardini, Ablin and Grangier 2024, with both warm-ups.
struct ademamix {
  double lr = 0, beta1 = 0, beta2 = 0, beta3 = 0, alpha = 0, eps = 0, weight_decay = 0;
  double alpha_warmup = 0, beta3_warmup = 0;

  double beta3_at(double t) const {
    if (t >= beta3_warmup) return beta3;
    double const done = t / beta3_warmup, start = std::log(beta1), end = std::log(beta3);
    return std::min(std::exp(start * end / ((1 - done) * end + done * start)), beta3);
  }
  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step) const {
    using std::sqrt;
    double const t = static_cast<double>(step), b3 = beta3_at(t);
    double const a = t < alpha_warmup ? t * alpha / alpha_warmup : alpha;
    auto& [fast, v, slow] = e.s;
    fast = T(beta1) * fast + T(1 - beta1) * g;
    slow = T(b3) * slow + T(1 - b3) * g;
    v = T(beta2) * v + T(1 - beta2) * (g * g);
    T const root = sqrt(v) / T(std::sqrt(1 - std::pow(beta2, t))) + T(eps);
    T const mixed = fast * T(1 / (1 - std::pow(beta1, t))) + T(a) * slow;
    e.p = e.p * T(1 - lr * weight_decay) - T(lr) * (mixed / root);
  }
};

/// Tieleman and Hinton 2012 with L2 decay.
struct rmsprop {
  double lr = 0, alpha = 0, eps = 0, weight_decay = 0;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t) const {
    using std::sqrt;
    g = g + T(weight_decay) * e.p;
    e.s[0] = T(alpha) * e.s[0] + T(1 - alpha) * (g * g);
    e.p = e.p - T(lr) * (g / (sqrt(e.s[0]) + T(eps)));
  }
};

/// Duchi, Hazan and Singer 2011 with L2 decay and PyTorch's decay of the rate.
struct adagrad {
  double lr = 0, lr_decay = 0, eps = 0, weight_decay = 0, initial = 0;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step) const {
    using std::sqrt;
    g = g + T(weight_decay) * e.p;
    e.s[0] = e.s[0] + g * g;
    double const rate = lr / (1 + static_cast<double>(step - 1) * lr_decay);
    e.p = e.p - T(rate) * (g / (sqrt(e.s[0] + T(initial)) + T(eps)));
  }
};

/// Chen et al. 2023.
struct lion {
  double lr = 0, beta1 = 0, beta2 = 0, weight_decay = 0;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t) const {
    T const direction = sign(T(beta1) * e.s[0] + T(1 - beta1) * g);
    e.p = e.p * T(1 - lr * weight_decay) - T(lr) * direction;
    e.s[0] = T(beta2) * e.s[0] + T(1 - beta2) * g;
  }
};

/// Bernstein et al. 2018 with decoupled decay.
struct signum {
  double lr = 0, beta = 0, weight_decay = 0;

  template <class T>
  void operator()(element<T>& e, T g, std::int64_t) const {
    e.s[0] = T(beta) * e.s[0] + T(1 - beta) * g;
    e.p = e.p * T(1 - lr * weight_decay) - T(lr) * sign(e.s[0]);
  }
};

inline double value_of(double a) {
  return a;
}
inline double norm_of(std::vector<double> const& values) {
  double sum = 0;
  for (double x : values) sum += x * x;
  return std::sqrt(sum);
}

/// A trust ratio: 1 where a norm is zero, between bounds.
template <class T>
T trusted(T parameter, T direction, T ratio, double least, double most) {
  if (value_of(parameter) == 0 || value_of(direction) == 0) ratio = T(1);
  ratio = larger(ratio, T(least));
  return most < HUGE_VAL ? smaller(ratio, T(most)) : ratio;
}

/// You et al. 2020, algorithm 2, with the decay in the direction.
struct lamb {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0, min_trust = 0, max_trust = 0;

  template <class T>
  T direction(element<T>& e, T g, std::int64_t step) const {
    using std::sqrt;
    double const t = static_cast<double>(step);
    auto& [m, v, unused] = e.s;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * (g * g);
    T const root = sqrt(v) / T(std::sqrt(1 - std::pow(beta2, t)));
    return m / T(1 - std::pow(beta1, t)) / (root + T(eps)) + T(weight_decay) * e.p;
  }
  template <class T>
  T trust(T parameter, T direction) const {
    return trusted(parameter, direction, parameter / direction, min_trust, max_trust);
  }
  template <class T>
  void operator()(element<T>& e, T g, std::int64_t step, T ratio) const {
    T const u = direction(e, g, step);
    e.p = e.p - T(lr) * ratio * u;
  }
};

/// You, Gitman and Ginsburg 2017; the rate outside the momentum.
struct lars {
  double lr = 0, momentum = 0, weight_decay = 0, coefficient = 0, eps = 0, min_trust = 0,
         max_trust = 0;

  template <class T>
  T direction(element<T>&, T g, std::int64_t) const {
    return g;
  }
  template <class T>
  T trust(T parameter, T gradient) const {
    T const below = gradient + T(weight_decay) * parameter + T(eps);
    return trusted(parameter, gradient, T(coefficient) * parameter / below, min_trust, max_trust);
  }
  template <class T>
  void operator()(element<T>& e, T g, std::int64_t, T ratio) const {
    e.s[0] = T(momentum) * e.s[0] + ratio * (g + T(weight_decay) * e.p);
    e.p = e.p - T(lr) * e.s[0];
  }
};

/// One step of a whole tensor.
template <class Rule, class T>
void take_step(Rule const& rule, std::vector<element<T>>& tensor, std::vector<T> const& g,
               std::int64_t step) {
  if constexpr (requires { rule.trust(T(), T()); }) {
    std::vector<T> p, u;
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      auto dry = tensor[i];
      p.push_back(dry.p);
      u.push_back(rule.direction(dry, g[i], step));
    }
    T const ratio = rule.trust(norm_of(p), norm_of(u));
    for (std::size_t i = 0; i < tensor.size(); ++i) rule(tensor[i], g[i], step, ratio);
  } else {
    for (std::size_t i = 0; i < tensor.size(); ++i) rule(tensor[i], g[i], step);
  }
}

}  // namespace reference
