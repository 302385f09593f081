// Blocks on the host: reading codes into floats, finding scales, writing codes, lanes at a time.
// Used by the step and by quantize and dequantize, so that both code a block in the same way.
#pragma once

#include <cstdint>

#include "memfit/codec/column.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit::detail {

inline constexpr std::uint32_t infinity_bits = 0x7f800000u;

/// Whether 1 / scale and products with it stay far from both ends of the range of floats.
inline bool ordinary_scale(std::uint32_t scale_bits) {
  return scale_bits == 0 || (scale_bits >= 0x0d800000u && scale_bits <= 0x71800000u);  // 2^±100
}

/// Divides by a block's scale: the correctly rounded quotient for ordinary scales, without a
/// division per element. `Any` scales, subnormal ones included, take one exact multiplication more.
template <class F, bool Any>
class normalizer {
 public:
  explicit normalizer(float scale) {
    float const lift = !Any ? 1.0f : scale < 1.0f ? 0x1p64f : 0x1p-64f;
    float const lifted = scale * lift;
    float const inverse = lifted > 0.0f ? 1.0f / lifted : 0.0f;
    lift_ = F(lift);
    minus_scale_ = F(-lifted);
    inverse_ = F(inverse);
  }
  F operator()(F const& value) const {
    F x = value;
    if constexpr (Any) x = x * lift_;
    F const q = x * inverse_;
    return fma(fma(minus_scale_, q, x), inverse_, q);
  }

 private:
  F lift_, minus_scale_, inverse_;
};

/// Elements i … of a gradient or tensor of the given kind, as floats.
template <class F>
inline F load_scalars(void const* data, scalar_kind kind, std::int64_t i) {
  if (kind == scalar_kind::fp32) return ops<F>::load(static_cast<float const*>(data) + i);
  auto const c = ops<F>::load(static_cast<std::uint16_t const*>(data) + i);
  return kind == scalar_kind::bf16 ? bf16_codec::decode(c) : fp16_codec::decode(c);
}

/// Moments under their block's scale; without `Any` the scale is an ordinary one, which no code
/// above zero can make vanish.
template <class C, range R, bool Any, class F>
inline F load_moment(typename C::code const* codes, F const& scale) {
  auto const c = ops<F>::load(codes);
  if constexpr (Any) return moment_value<C, R>(c, scale);
  if constexpr (C::scaled) return C::decode(c) * scale;
  return C::decode(c);
}

/// Largest magnitude among n values, as a bit pattern: infinities and NaN order above all others.
template <class F>
inline std::uint32_t largest_magnitude(float const* x, int n) {
  using U = uint_of<F>;
  U most(0u);
  for (int i = 0; i < n; i += ops<F>::width)
    most = max(most, bits(ops<F>::load(x + i)) & 0x7fffffffu);
  return ops<F>::largest(most);
}

/// Writes n moments as codes under a scale; `Keep` what is above zero above zero.
template <class F, class C, range R, bool Any, bool Keep>
inline void store_moments(float const* x, int n, float scale, typename C::code* codes) {
  normalizer<F, Any> const normalize(scale);
  for (int i = 0; i < n; i += ops<F>::width) {
    F const value = ops<F>::load(x + i);
    F const y = C::scaled ? normalize(value) : value;
    if constexpr (Keep)
      ops<F>::store(codes + i, encode_moment<C, R>(y, value > F(0.0f)));
    else
      ops<F>::store(codes + i, C::encode(y));
  }
}

}  // namespace memfit::detail
