// Gradients summed in plain bf16.
// expect: sums rounded to bf16 stop growing
#include <memfit/memfit.hpp>
#include <vector>

#ifdef MEMFIT_FAIL
using sums = memfit::bf16;
#else
using sums = memfit::stochastic<memfit::bf16>;
#endif

int main() {
  std::vector<std::vector<float>> params(1);
  memfit::gradient_accumulator<sums> accumulator{memfit::host{}, params};
}
