// A tensor type that memfit cannot see through: tensor_traits is not specialized for it.
// expect: tensor_traits
#include <memfit/memfit.hpp>
#include <vector>

struct opaque {};

int main() {
#ifdef MEMFIT_FAIL
  std::vector<opaque> params(1);
#else
  std::vector<std::vector<float>> params(1);
#endif
  memfit::optimizer<memfit::adamw, memfit::float8> opt{memfit::host{}, {}, params};
}
