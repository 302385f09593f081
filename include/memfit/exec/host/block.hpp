// Blocks on the host: reading codes into floats, finding scales, writing codes, lanes at a time.
// Used by the step and by quantize and dequantize, so that both code a block in the same way.
#pragma once

#include <cstdint>

#include "memfit/exec/block.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit::detail {

/// The codes of consecutive elements from i on: even where two share a byte, save one by one.
template <class C, class F>
inline uint_of<F> load_patterns(typename C::code const* codes, std::int64_t i) {
  if constexpr (code_width<C>() != 4)
    return ops<F>::load(codes + i);
  else if constexpr (ops<F>::width == 1)
    return load_code<C>(codes, i);
  else
    return ops<F>::load_halves(codes + i / 2);
}
template <class C, class F>
inline void store_patterns(typename C::code* codes, std::int64_t i, uint_of<F> const& patterns) {
  if constexpr (code_width<C>() != 4) {
    ops<F>::store(codes + i, patterns);
  } else if constexpr (ops<F>::width == 1) {
    store_code<C>(codes, i, patterns);
  } else {
    ops<F>::store_halves(codes + i / 2, patterns);
  }
}

/// Their values, before any scale.
template <class C, class F>
inline F load_codes(typename C::code const* codes, std::int64_t i) {
  if constexpr (requires { ops<F>::from_fp16(C::fp16_pattern(ops<F>::load_patterns(codes))); })
    return ops<F>::from_fp16(C::fp16_pattern(ops<F>::load_patterns(codes + i)));
  else
    return C::decode(load_patterns<C, F>(codes, i));
}

/// Elements i … of a gradient or tensor of the given kind, as floats.
template <class F>
inline F load_scalars(void const* data, scalar_kind kind, std::int64_t i) {
  if (kind == scalar_kind::fp32) return ops<F>::load(static_cast<float const*>(data) + i);
  auto const* const half = static_cast<std::uint16_t const*>(data);
  return kind == scalar_kind::bf16 ? load_codes<bf16_codec, F>(half, i)
                                   : load_codes<fp16_codec, F>(half, i);
}

/// Moments under their block's scale; without `Any` the scale is an ordinary one, which no code
/// above zero can make vanish.
template <class Storage, bool Any, class F>
inline F load_moment(typename Storage::code const* codes, std::int64_t i, F const& scale) {
  using C = typename Storage::codec;
  if constexpr (Any)
    return moment_value<C, Storage::values>(load_patterns<C, F>(codes, i), scale);
  else if constexpr (C::scaled)
    return product(load_codes<C, F>(codes, i), scale);
  else
    return load_codes<C, F>(codes, i);
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
template <class F, class Storage, bool Any, rounding How>
inline void store_codes(F const& x, normalizer<F, Any> const& normalize, code_masks<F>& masks,
                        typename Storage::code* codes, std::int64_t i) {
  store_patterns<typename Storage::codec, F>(codes, i, coded<Storage, How>(x, normalize, masks));
}

}  // namespace memfit::detail
