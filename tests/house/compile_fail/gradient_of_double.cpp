// A gradient whose elements are of a type that no column has.
// expect: gradients are fp32, bf16 or fp16
#include <memfit/memfit.hpp>
#include <vector>

int main() {
  std::vector<std::vector<float>> params(1);
  memfit::optimizer<memfit::adamw, memfit::float8> opt{memfit::host{}, {}, params};
#ifdef MEMFIT_FAIL
  std::vector<std::vector<double>> grads(1);
#else
  std::vector<std::vector<memfit::bf16>> grads(1);
#endif
  opt.step(grads);
}
