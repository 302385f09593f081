// A rule of the user's own: written once, it trains with every state format.
#include <memfit/memfit.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

// example-begin rule
// Momentum that moves a parameter only where the buffer and the gradient agree (arXiv 2411.16085).
struct cautious {
  double lr = 1e-2, beta = 0.9;
  static constexpr char const* name = "cautious";
  static constexpr std::array<memfit::slot, 1> slots{{{"buffer", memfit::range::any}}};
  struct constants {
    float lr, beta;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      s[0] = memfit::fma(beta, s[0], g);
      p = memfit::select(s[0] * g > F(0.0f), memfit::fma(-lr, s[0], p), p);
    }
  };
  MEMFIT_HD constants at(std::int64_t) const {
    return {static_cast<float>(lr), static_cast<float>(beta)};
  }
  memfit::hyperparameter_list hyperparameters() { return {{"lr", lr}, {"beta", beta}}; }
};
// example-end rule

// Trains towards a valley that is steep in some directions and flat in others; returns the loss.
template <class Format>
static double train(int steps) {
  constexpr int n = 10000;
  std::vector<std::vector<float>> params{std::vector<float>(n, 1.0f)};
  std::vector<std::vector<float>> grads{std::vector<float>(n)};
  memfit::optimizer<cautious, Format> opt{memfit::host{}, {.lr = 0.1}, params};
  double loss = 0;
  for (int step = 0; step <= steps; ++step) {
    loss = 0;
    for (std::size_t i = 0; i < n; ++i) {
      float const steepness = 1.0f / static_cast<float>(1 + i % 10);
      float const x = params[0][i];
      grads[0][i] = steepness * x;
      loss += 0.5 * static_cast<double>(steepness * x * x);
    }
    if (step < steps) opt.step(grads);
  }
  std::printf("%10.3g after %3d steps, %6lld bytes of state\n", loss, steps,
              static_cast<long long>(opt.describe().state_bytes));
  return loss;
}

int main() {
  double const before = train<memfit::fp32>(0);
  double const fp32 = train<memfit::fp32>(200);
  double const float8 = train<memfit::float8>(200);
  return fp32 < 1e-3 * before && float8 < 1e-3 * before ? 0 : 1;
}
