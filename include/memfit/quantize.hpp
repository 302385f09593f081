// Block-wise quantization of whole tensors, and back.
// Used to store any tensor in few bits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/companded.hpp"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/float.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/packed4.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/core/check.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit {

/// Number of blocks, and so of scales, that Format has for n elements.
template <block_format Format>
constexpr std::int64_t block_count(std::int64_t n) {
  return block_count(n, format_traits<Format, range::any>::block);
}

namespace detail {

template <class Storage, class T, class C, class S>
void require_quantized(char const* call, T const& values, tensor_ref<C> const& codes,
                       tensor_ref<S> const& scales) {
  static_assert(std::is_same_v<std::remove_const_t<C>, typename Storage::code>,
                "memfit: the tensor of codes has the elements of the format's codec: std::uint8_t "
                "for 8 bits and for 4");
  static_assert(
      std::is_same_v<std::remove_const_t<S>, typename Storage::scale>,
      "memfit: the tensor of scales has the elements of the format: float or memfit::bf16");
  auto const name = !values.name.empty() ? values.name : codes.name;
  require_data(call, "the value tensor", name, values);
  require_data(call, "codes", name, codes);
  require_data(call, "scales", name, scales);
  require_count(call, "codes", name, codes, Storage::code_bytes(values.count) / Storage::code_size);
  require_count(call, "scales", name, scales,
                Storage::scale_bytes(values.count) / Storage::scale_size);
  require_disjoint(call, name, "the value tensor", values, "codes", codes);
  require_disjoint(call, name, "the value tensor", values, "scales", scales);
  require_disjoint(call, name, "codes", codes, "scales", scales);
}

}  // namespace detail

/// Codes every element of `in` with Format, block by block.
///
/// `in`: fp32, bf16 or fp16. `codes`: as many of the codec's code type, or half as many, rounded
/// up, where two share a byte. `scales`: block_count<Format>(n) floats, each the largest magnitude
/// of its block, exactly, or memfit::bf16 where the format says so, rounded up; an empty tensor for
/// formats without scales. Every element takes the nearest code; with range::non_negative, negative
/// values become 0. In scaled formats a NaN counts as 0 and an infinity as the block's largest
/// finite magnitude. Throws argument_error for null data, counts
/// that do not fit and overlapping tensors, before anything is written. The same bits for every
/// executor.
template <block_format Format, range R = range::any, executor E, tensor In, tensor Codes,
          tensor Scales>
void quantize(E const& exec, In&& in, Codes&& codes, Scales&& scales) {
  using S = storage<Format, R>;
  auto const x = ref(in);
  auto const c = ref(codes);
  auto const s = ref(scales);
  static_assert(scalar_element<element_of<In>>,
                "memfit::quantize: elements are fp32, bf16 or fp16");
  detail::require_quantized<S>("quantize", x, c, s);
  detail::naming("quantize", x.name, x.count, 1, [&] {
    exec.template quantize<S>(x.data, kind_of<element_of<In>>, x.count, c.data, s.data);
  });
}

/// Writes the values of `codes` under `scales` to `out` (fp32, bf16 or fp16). Counts, errors and
/// order of execution as for quantize.
template <block_format Format, range R = range::any, executor E, tensor Codes, tensor Scales,
          tensor Out>
void dequantize(E const& exec, Codes&& codes, Scales&& scales, Out&& out) {
  using S = storage<Format, R>;
  auto const c = ref(codes);
  auto const s = ref(scales);
  auto const x = ref(out);
  using element = element_of<Out>;
  static_assert(scalar_element<element>, "memfit::dequantize: elements are fp32, bf16 or fp16");
  detail::require_quantized<S>("dequantize", x, c, s);
  detail::naming("dequantize", x.name, x.count, 1, [&] {
    exec.template dequantize<S>(c.data, s.data, x.count, x.data, kind_of<element>);
  });
}

}  // namespace memfit
