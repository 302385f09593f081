// Scales of 32 bits for a format that has them in 16.
// expect: the tensor of scales has the elements of the format
#include <cstdint>
#include <memfit/memfit.hpp>
#include <vector>

#ifdef MEMFIT_FAIL
using scale_type = float;
#else
using scale_type = memfit::bf16;
#endif

int main() {
  std::vector<float> x(64);
  std::vector<std::uint8_t> codes(32);
  std::vector<scale_type> scales(1);
  memfit::quantize<memfit::packed4>(memfit::host{1}, x, codes, scales);
}
