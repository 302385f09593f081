// The smallest user of memfit: a project of its own that finds memfit and takes one step with it.
// tests/house/consumer.py builds it both ways that a user can include memfit.
#include <memfit/memfit.hpp>

#include <cstdio>
#include <vector>

int main() {
  std::vector<std::vector<float>> params{std::vector<float>(5000, 1.0f)};
  std::vector<std::vector<float>> grads{std::vector<float>(5000, 0.25f)};
  memfit::optimizer<memfit::adamw, memfit::dynamic8> opt{memfit::host{}, {.lr = 0.5}, params};
  opt.step(grads);
  std::printf("a parameter went from 1 to %g\n", static_cast<double>(params[0][0]));
  return params[0][0] < 1.0f ? 0 : 1;
}
