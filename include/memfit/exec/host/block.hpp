// Blocks on the host: reading codes into floats, finding scales, writing codes, lanes at a time.
// Used by the step and by quantize and dequantize, so that both code a block in the same way.
#pragma once

#include <cstdint>

#include "memfit/exec/block.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit::detail {

/// The values of consecutive codes, before any scale.
template <class C, class F>
inline F load_codes(typename C::code const* codes) {
  if constexpr (requires { ops<F>::from_fp16(C::fp16_pattern(ops<F>::load_patterns(codes))); })
    return ops<F>::from_fp16(C::fp16_pattern(ops<F>::load_patterns(codes)));
  else
    return C::decode(ops<F>::load(codes));
}

/// Elements i … of a gradient or tensor of the given kind, as floats.
template <class F>
inline F load_scalars(void const* data, scalar_kind kind, std::int64_t i) {
  if (kind == scalar_kind::fp32) return ops<F>::load(static_cast<float const*>(data) + i);
  auto const* const half = static_cast<std::uint16_t const*>(data) + i;
  return kind == scalar_kind::bf16 ? load_codes<bf16_codec, F>(half)
                                   : load_codes<fp16_codec, F>(half);
}

/// Moments under their block's scale; without `Any` the scale is an ordinary one, which no code
/// above zero can make vanish.
template <class C, range R, bool Any, class F>
inline F load_moment(typename C::code const* codes, F const& scale) {
  if constexpr (Any)
    return moment_value<C, R>(ops<F>::load(codes), scale);
  else if constexpr (C::scaled)
    return product(load_codes<C, F>(codes), scale);
  else
    return load_codes<C, F>(codes);
}

/// Largest magnitude among n values, as a bit pattern: infinities and NaN order above all others.
template <class F>
inline std::uint32_t largest_magnitude(float const* x, int n) {
  using U = uint_of<F>;
  U most(0u);
  for (int i = 0; i < n; i += ops<F>::width)
    most = larger(most, bits(ops<F>::load(x + i)) & 0x7fffffffu);
  return ops<F>::largest(most);
}

/// The codes of values under their block's normalizer.
template <class F, class C, range R, bool Any, rounding How>
inline void store_codes(F const& x, normalizer<F, Any> const& normalize, code_masks<F>& masks,
                        typename C::code* codes) {
  ops<F>::store(codes, coded<C, R, How>(x, normalize, masks));
}

}  // namespace memfit::detail
