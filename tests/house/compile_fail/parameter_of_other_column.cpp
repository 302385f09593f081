// Parameters stored as bf16, registered with an optimizer whose parameter column is fp32.
// expect: element type is not that of the Param column
#include <memfit/memfit.hpp>
#include <vector>

#ifdef MEMFIT_FAIL
using column = memfit::fp32;
#else
using column = memfit::split<memfit::bf16>;
#endif

int main() {
  std::vector<std::vector<memfit::bf16>> params(1);
  memfit::optimizer<memfit::adamw, memfit::float8, column> opt{memfit::host{}, {}, params};
}
