// Every rule's update and every format's encode and decode inside a kernel, and the driver's own
// kernels. Compiled by device.py with the bare flags of a user who gives none, and so for the
// oldest device that the compiler knows; the lists below name every rule, format and parameter
// column, and device.py checks that they do.
#include <cstdint>

#include "memfit/codec/column.hpp"
#include "memfit/codec/companded.hpp"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/float.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/packed4.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/memfit.cuh"
#include "memfit/rule/adaptive.hpp"
#include "memfit/rule/ademamix.hpp"
#include "memfit/rule/amsgrad.hpp"
#include "memfit/rule/layerwise.hpp"
#include "memfit/rule/momentum.hpp"
#include "memfit/rule/nadam.hpp"
#include "memfit/rule/radam.hpp"
#include "memfit/rule/root.hpp"
#include "memfit/rule/sign.hpp"

namespace {

template <class... Types>
struct list {};

using rules =
    list<memfit::sgd, memfit::momentum, memfit::adam, memfit::adamw, memfit::amsgrad,
         memfit::amsgradw, memfit::nadam, memfit::radam, memfit::ademamix, memfit::rmsprop,
         memfit::adagrad, memfit::lion, memfit::signum, memfit::lamb, memfit::lars>;
using formats = list<memfit::fp32, memfit::bf16, memfit::fp16, memfit::dynamic8, memfit::float8,
                     memfit::linear8, memfit::blocked<memfit::float8, 64>, memfit::companded8,
                     memfit::root8, memfit::packed4>;
using columns =
    list<memfit::fp32, memfit::bf16, memfit::fp16, memfit::stochastic<memfit::bf16>,
         memfit::stochastic<memfit::fp16>, memfit::split<memfit::bf16>, memfit::split<memfit::fp16>,
         memfit::corrected<memfit::bf16>, memfit::corrected<memfit::fp16>,
         memfit::stochastic<memfit::corrected<memfit::bf16>>,
         memfit::stochastic<memfit::corrected<memfit::fp16>>, memfit::master<memfit::fp16>>;

template <class Constants, int Slots>
__global__ void update(Constants constants, float* p, float const* g, float* moments) {
  if constexpr (Slots == 0) {
    constants(*p, *g);
  } else {
    float s[Slots];
    for (int k = 0; k < Slots; ++k) s[k] = moments[k];
    constants(*p, *g, s);
    for (int k = 0; k < Slots; ++k) moments[k] = s[k];
  }
}

template <class Format, memfit::range R>
__global__ void moment(float const* in, std::uint32_t* code, float* out) {
  using codec = memfit::codec_for<Format, R>;
  *code = memfit::encode_moment<codec, R>(*in, *in > 0.0f);
  *out = codec::decode(*code);
}

template <class Param>
__global__ void parameter(float const* in, std::uint32_t noise, float* out) {
  using column = memfit::column_for<Param>;
  auto const code = column::encode(*in, noise);
  out[0] = column::decode(code.visible, code.kept);
  out[1] = column::decode_visible(code.visible);
}

template <class... Rule>
void launch_rules(list<Rule...>, float* p) {
  (update<memfit::constants_of<Rule>, memfit::slot_count<Rule>><<<1, 1>>>(Rule{}.at(1), p, p, p),
   ...);
}

template <class... Format>
void launch_formats(list<Format...>, float* p, std::uint32_t* code) {
  (moment<Format, memfit::range::any><<<1, 1>>>(p, code, p), ...);
  (moment<Format, memfit::range::non_negative><<<1, 1>>>(p, code, p), ...);
}

template <class... Param>
void launch_columns(list<Param...>, float* p) {
  (parameter<Param><<<1, 1>>>(p, 1u, p), ...);
}

}  // namespace

void launch_all(float* p, std::uint32_t* code) {
  launch_rules(rules{}, p);
  launch_formats(formats{}, p, code);
  launch_columns(columns{}, p);
}

template <class... Param>
void launch_sums(list<Param...>, std::span<memfit::tensor_ref<float> const> g) {
  memfit::cuda const exec;
  (memfit::gradient_accumulator<Param>(exec, g).add(g, 1), ...);
}

memfit::gate window(memfit::tensor_ref<float> g, memfit::tensor_ref<memfit::fp16> half) {
  memfit::cuda const exec;
  memfit::cast(exec, g, half);
  memfit::cast_stochastic(exec, g, half, 1);
  using memfit::bf16, memfit::fp32;
  launch_sums(list<fp32, memfit::stochastic<bf16>, memfit::split<bf16>>{}, std::span(&g, 1));
  memfit::gradient_accumulator sums(exec, std::span(&g, 1));
  memfit::loss_scaler scaler(exec);
  auto gate = memfit::clip_norm(sums, scaler.unscale(sums), 1);
  gate = memfit::clip_percentile(sums, gate, 5);
  scaler.update(gate);
  return gate;
}

memfit::optimizer<memfit::adamw, memfit::float8> make(memfit::tensor_ref<float> p) {
  memfit::cuda const exec;
  memfit::zero(exec, p);
  memfit::global_norm norm(exec, std::span(&p, 1));
  memfit::quantize<memfit::dynamic8>(exec, p, memfit::tensor_ref<std::uint8_t>{},
                                     memfit::tensor_ref<float>{});
  return {exec, {}, std::span(&p, 1)};
}
