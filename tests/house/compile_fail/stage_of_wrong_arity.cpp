// A model whose forward lacks the context.
// expect: the model needs forward\(std::int64_t stage, void const\* in, void\* out, memfit::checkpoint::context&\)
#include <memfit/checkpoint/plan.hpp>
#include <memfit/checkpoint/run.hpp>
#include <memfit/exec/host.hpp>

#include <cstdint>

struct model {
#ifdef MEMFIT_FAIL
  void forward(std::int64_t, void const*, void*) {}
#else
  void forward(std::int64_t, void const*, void*, memfit::checkpoint::context&) {}
#endif
};

int main() {
  memfit::checkpoint::chain const stages(3);
  memfit::checkpointed run{memfit::host{}, stages, memfit::checkpoint::forward_only(stages)};
  run.forward(model{}, nullptr);
}
