// Micro-batches folded into the moments of a rule that takes a sign of each gradient.
// expect: this rule does not fold the gradients of micro-batches
#include <memfit/memfit.hpp>
#include <vector>

#ifdef MEMFIT_FAIL
using rule = memfit::lion;
#else
using rule = memfit::adamw;
#endif

int main() {
  std::vector<std::vector<float>> params(1);
  memfit::optimizer<rule, memfit::fp32> opt{memfit::host{}, {}, params};
  memfit::gradient_release release{memfit::host{}, opt};
  release.begin_folded(2);
  release.micro_batch(1);
}
