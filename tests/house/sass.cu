// The CUDA driver's step kernels for the rules, formats and parameter columns that sass.py judges.
// Compiled by sass.py alone, never run.
#include "memfit/codec/companded.hpp"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/packed4.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/exec/cuda.cuh"
#include "memfit/rule/adaptive.hpp"
#include "memfit/rule/momentum.hpp"

static_assert(memfit::detail::runs == 2, "RUNS in sass.py");

namespace {

template <class Rule, class Format, class Param>
void step(memfit::cuda const& exec) {
  exec.step<Rule, Format, memfit::column_for<Param>>({}, {});
}

template <class... Format>
void adamw(memfit::cuda const& exec) {
  (step<memfit::adamw, Format, memfit::fp32>(exec), ...);
  (step<memfit::adamw, Format, memfit::split<memfit::bf16>>(exec), ...);
}

}  // namespace

void step_all(memfit::cuda const& exec) {
  adamw<memfit::fp32, memfit::bf16, memfit::float8, memfit::dynamic8, memfit::linear8>(exec);
  step<memfit::adamw, memfit::root8, memfit::fp32>(exec);
  step<memfit::adamw, memfit::companded8, memfit::fp32>(exec);
  step<memfit::adamw, memfit::packed4, memfit::fp32>(exec);
  step<memfit::sgd, memfit::fp32, memfit::fp32>(exec);
  step<memfit::momentum, memfit::float8, memfit::fp32>(exec);
}
