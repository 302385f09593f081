// Reads states of bitsandbytes from tests/golden/bitsandbytes.safetensors and exports them again:
//   export_bitsandbytes GOLDEN FILE
// Used with tests/golden/make_bitsandbytes.py FILE, by which bitsandbytes goes on from there.
#include <cstdio>
#include <exception>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/interop/bitsandbytes.hpp"
#include "memfit/optimizer.hpp"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: export_bitsandbytes GOLDEN FILE\n");
    return 2;
  }
  std::vector<float> w(26 * 27), b(10);
  std::vector<memfit::tensor_ref<float>> const parameters{{w.data(), 702, "w"},
                                                          {b.data(), 10, "b"}};
  memfit::optimizer<memfit::adamw, memfit::dynamic8> opt(memfit::host{1}, {}, parameters,
                                                         {.min_quantized = 256});
  memfit::load_state(argv[1], bitsandbytes_states(opt));
  memfit::save_state(argv[2], bitsandbytes_states(opt));
} catch (std::exception const& failed) {
  std::fprintf(stderr, "export_bitsandbytes: %s\n", failed.what());
  return 1;
}
