// A format for each of three slots, where the rule has two.
// expect: per_slot names a format for each slot of the rule
#include <memfit/memfit.hpp>
#include <vector>

#ifdef MEMFIT_FAIL
using formats = memfit::per_slot<memfit::bf16, memfit::float8, memfit::float8>;
#else
using formats = memfit::per_slot<memfit::bf16, memfit::float8>;
#endif

int main() {
  std::vector<std::vector<float>> params(1);
  memfit::optimizer<memfit::adamw, formats> opt{memfit::host{}, {}, params};
}
