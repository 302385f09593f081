// A state format that is no format.
// expect: format
#include <memfit/memfit.hpp>
#include <vector>

#ifdef MEMFIT_FAIL
using format = int;
#else
using format = memfit::float8;
#endif

int main() {
  std::vector<std::vector<float>> params(1);
  memfit::optimizer<memfit::adamw, format> opt{memfit::host{}, {}, params};
}
