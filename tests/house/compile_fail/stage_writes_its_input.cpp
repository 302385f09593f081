// A model whose backward wants to write the stage's input.
// expect: the model needs backward\(std::int64_t stage, void const\* in, void const\* out, void\* out_gradient
#include <memfit/checkpoint/plan.hpp>
#include <memfit/checkpoint/run.hpp>
#include <memfit/exec/host.hpp>

#include <cstdint>

#ifdef MEMFIT_FAIL
using input = void*;
#else
using input = void const*;
#endif

struct model {
  void forward(std::int64_t, void const*, void*, memfit::checkpoint::context&) {}
  void backward(std::int64_t, input, void const*, void*, void*, memfit::checkpoint::context&) {}
};

int main() {
  memfit::checkpoint::chain const stages(3);
  memfit::checkpointed run{memfit::host{}, stages, memfit::checkpoint::keep_all(stages)};
  model m;
  run.forward(m, nullptr);
  run.backward(m);
}
