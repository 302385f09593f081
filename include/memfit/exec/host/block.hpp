// Blocks on the host: reading codes into floats, finding scales, writing codes, lanes at a time.
// Used by the step and by quantize and dequantize, so that both code a block in the same way.
#pragma once

#include <cstdint>

#include "memfit/codec/column.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit::detail {

inline constexpr std::uint32_t infinity_bits = 0x7f800000u;

/// Notices whether any of many values reaches a magnitude, infinities and NaN included.
template <class F, std::uint32_t Limit>
class overflow_watch {
 public:
  void see(F const& x) {
    if constexpr (Limit == infinity_bits)
      trace_ = fma(x, 0.0f, trace_);
    else
      most_ = larger(most_, bits(x) & 0x7fffffffu);
  }
  bool seen() const {
    if constexpr (Limit == infinity_bits)
      return any<F>(!(trace_ == F(0.0f)));
    else
      return ops<F>::largest(most_) >= Limit;
  }

 private:
  F trace_ = F(0.0f);
  uint_of<F> most_ = uint_of<F>(0u);
};

/// Whether 1 / scale and products with it stay far from both ends of the range of floats.
inline bool ordinary_scale(std::uint32_t scale_bits) {
  return scale_bits == 0 || (scale_bits >= 0x0d800000u && scale_bits <= 0x71800000u);  // 2^±100
}

/// Brings a block's values to [-1, 1] by the correctly rounded inverse of its scale as it is
/// stored. `Any` scales, subnormal ones included, take one
/// multiplication by a power of two more.
template <class F, bool Any>
class normalizer {
 public:
  normalizer() = default;
  explicit normalizer(float scale) {
    float const lift = !Any ? 1.0f : scale < 1.0f ? 0x1p64f : 0x1p-64f;
    float const lifted = scale * lift;
    lift_ = F(lift);
    inverse_ = F(lifted > 0.0f ? 1.0f / lifted : 0.0f);
  }
  F operator()(F const& x) const {
    if constexpr (Any) return (x * lift_) * inverse_;
    return x * inverse_;
  }

 private:
  F lift_, inverse_;
};

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

/// How a value is rounded to a code: to the nearest, or as moments are, which never vanish under a
/// root and, where `fading` holds, only shrink. The forms called nearly leave a few values unsure.
enum class rounding { nearest, nearest_nearly, moment, moment_nearly, fading_moment };

/// Masks that go along with a vector of values: fading goes in, unsure comes out.
template <class F>
struct code_masks {
  mask_of<F> fading{};
  mask_of<F> unsure{};
};

/// The codes of values under their block's normalizer.
template <class F, class C, range R, bool Any, rounding How>
inline void store_codes(F const& x, normalizer<F, Any> const& normalize, code_masks<F>& masks,
                        typename C::code* codes) {
  F y = x;
  if constexpr (C::scaled) y = normalize(x);
  if constexpr (How == rounding::nearest)
    ops<F>::store(codes, C::encode(y));
  else if constexpr (How == rounding::nearest_nearly)
    ops<F>::store(codes, encode_nearly<C>(y, masks.unsure));
  else if constexpr (How == rounding::fading_moment && R == range::any)
    ops<F>::store(codes, encode_fading<C>(y, masks.fading));
  else if constexpr (How == rounding::moment_nearly)
    ops<F>::store(codes, encode_moment_nearly<C, R>(y, x > F(0.0f), masks.unsure));
  else
    ops<F>::store(codes, encode_moment<C, R>(y, x > F(0.0f)));
}

}  // namespace memfit::detail
