// Block-wise quantization of whole tensors, and back.
// Used to store any tensor in few bits.
#pragma once

#include <cstdint>

#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/float.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/core/check.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit {

/// Number of blocks, and so of scales, that Format has for n elements.
template <format Format>
constexpr std::int64_t block_count(std::int64_t n) {
  return block_count(n, format_traits<Format, range::any>::block);
}

namespace detail {

template <class Format, range R, class T, class C, class S>
void require_quantized(char const* call, T const& values, C const& codes, S const& scales) {
  auto const name = !values.name.empty() ? values.name : codes.name;
  require_data(call, "the value tensor", name, values);
  require_data(call, "codes", name, codes);
  require_data(call, "scales", name, scales);
  require_count(call, "codes", name, codes, values.count);
  constexpr bool scaled = codec_for<Format, R>::scaled;
  require_count(call, "scales", name, scales, scaled ? block_count<Format>(values.count) : 0);
  require_disjoint(call, name, "the value tensor", values, "codes", codes);
  require_disjoint(call, name, "the value tensor", values, "scales", scales);
  require_disjoint(call, name, "codes", codes, "scales", scales);
}

}  // namespace detail

/// Codes every element of `in` with Format, block by block.
///
/// `in`: fp32, bf16 or fp16. `codes`: as many of the codec's code type. `scales`:
/// block_count<Format>(n) floats, each the largest magnitude of its block, exactly; an empty tensor
/// for formats without scales. Every element takes the nearest code; with
/// range::non_negative, negative values become 0. In scaled formats a NaN counts as 0 and an
/// infinity as the block's largest finite magnitude. Throws argument_error for null data, counts
/// that do not fit and overlapping tensors, before anything is written. The same bits for every
/// executor.
template <format Format, range R = range::any, executor E, tensor In, tensor Codes, tensor Scales>
void quantize(E const& exec, In&& in, Codes&& codes, Scales&& scales) {
  using C = codec_for<Format, R>;
  auto const x = ref(in);
  auto const c = ref(codes);
  auto const s = ref(scales);
  static_assert(scalar_element<element_of<In>>,
                "memfit::quantize: elements are fp32, bf16 or fp16");
  detail::require_quantized<Format, R>("quantize", x, c, s);
  detail::naming("quantize", x.name, x.count, 1, [&] {
    exec.template quantize<C, R, format_traits<Format, R>::block>(x.data, kind_of<element_of<In>>,
                                                                  x.count, c.data, s.data);
  });
}

/// Writes the values of `codes` under `scales` to `out` (fp32, bf16 or fp16). Counts, errors and
/// order of execution as for quantize.
template <format Format, range R = range::any, executor E, tensor Codes, tensor Scales, tensor Out>
void dequantize(E const& exec, Codes&& codes, Scales&& scales, Out&& out) {
  using C = codec_for<Format, R>;
  auto const c = ref(codes);
  auto const s = ref(scales);
  auto const x = ref(out);
  using element = element_of<Out>;
  static_assert(scalar_element<element>, "memfit::dequantize: elements are fp32, bf16 or fp16");
  detail::require_quantized<Format, R>("dequantize", x, c, s);
  detail::naming("dequantize", x.name, x.count, 1, [&] {
    exec.template dequantize<C, R, format_traits<Format, R>::block>(c.data, s.data, x.count, x.data,
                                                                    kind_of<element>);
  });
}

}  // namespace memfit
