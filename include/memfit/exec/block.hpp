// How a block is coded, on any device: scales, extreme values, and the rounding of moments.
// Used by the drivers of all executors, so that they give the same bits.
#pragma once

#include <cstdint>

#include "memfit/codec/column.hpp"
#include "memfit/codec/storage.hpp"
#include "memfit/core/random.hpp"

namespace memfit::detail {

inline constexpr std::uint32_t infinity_bits = 0x7f800000u;

/// Notices whether any of many values reaches a magnitude, infinities and NaN included.
template <class F, std::uint32_t Limit>
class overflow_watch {
 public:
  MEMFIT_HD void see(F const& x) {
    if constexpr (Limit == infinity_bits)
      trace_ = fma(x, 0.0f, trace_);
    else
      most_ = larger(most_, bits(x) & 0x7fffffffu);
  }
  MEMFIT_HD mask_of<F> hit() const {
    if constexpr (Limit == infinity_bits)
      return !(trace_ == F(0.0f));
    else
      return most_ > uint_of<F>(Limit - 1u);
  }
  MEMFIT_HD bool seen() const { return any<F>(hit()); }

 private:
  F trace_ = F(0.0f);
  uint_of<F> most_ = uint_of<F>(0u);
};

/// Whether a gate's limit is one: infinity is none.
MEMFIT_HD inline bool limits(float limit) {
  return bits(limit) < infinity_bits;
}

/// What becomes of a multiplied gradient under a gate's limit: a NaN stays one.
template <class F>
MEMFIT_HD inline F limited(F const& g, float limit) {
  return select(abs(g) > F(limit), with_sign_of(g, F(limit)), g);
}

/// Whether 1 / scale and products with it stay far from both ends of the range of floats.
MEMFIT_HD inline bool ordinary_scale(std::uint32_t scale_bits) {
  return scale_bits == 0 || (scale_bits >= 0x0d800000u && scale_bits <= 0x71800000u);  // 2^±100
}

/// Brings a block's values to [-1, 1] by the correctly rounded inverse of its scale as it is
/// stored. `Any` scales include those that are not ordinary, which take one multiplication by a
/// power of two more.
template <class F, bool Any>
class normalizer {
 public:
  normalizer() = default;
  MEMFIT_HD explicit normalizer(float scale) {
    float const lift = !Any || ordinary_scale(bits(scale)) ? 1.0f
                       : scale < 1.0f                      ? 0x1p64f
                                                           : 0x1p-64f;
    float const lifted = scale * lift;
    lift_ = F(lift);
    inverse_ = F(lifted > 0.0f ? 1.0f / lifted : 0.0f);
  }
  MEMFIT_HD F operator()(F const& x) const {
    if constexpr (Any) return (x * lift_) * inverse_;
    return x * inverse_;
  }

 private:
  F lift_, inverse_;
};

/// Least magnitude, as a pattern, that a new moment of this codec may not have.
template <class C>
constexpr std::uint32_t limit_of() {
  if constexpr (C::scaled)
    return infinity_bits;
  else
    return C::overflow;
}
template <class C>
inline constexpr std::uint32_t moment_limit = limit_of<C>();

/// What a slot of this range can hold of a value: nothing below zero in a non-negative one.
template <range R, class F>
MEMFIT_HD inline F representable(F const& x) {
  if constexpr (R == range::non_negative)
    return select(x < F(0.0f), F(0.0f), x);
  else
    return x;
}

/// How a value is rounded to a code: to the nearest, or as moments are, which never vanish under a
/// root and, where `fading` holds, only shrink. The forms called nearly leave a few values unsure.
enum class rounding { nearest, nearest_nearly, moment, moment_nearly, fading_moment };

/// What goes along with a vector of values: fading and noise go in, unsure comes out. Noise is 32
/// random bits per value, for slots that round at random.
template <class F>
struct code_masks {
  mask_of<F> fading{};
  doubt_of<F> unsure{};
  uint_of<F> noise{};
};

/// Whether new moments in this storage take noise.
template <class Storage, rounding How>
inline constexpr bool takes_noise =
    Storage::at_random&& How != rounding::nearest&& How != rounding::nearest_nearly;

/// The codes of values under their block's normalizer.
template <class Storage, rounding How, class F, bool Any>
MEMFIT_HD inline uint_of<F> coded(F const& x, normalizer<F, Any> const& normalize,
                                  code_masks<F>& masks) {
  using C = typename Storage::codec;
  constexpr range R = Storage::values;
  F y = x;
  if constexpr (C::scaled) y = normalize(x);
  if constexpr (How == rounding::nearest)
    return C::encode(y);
  else if constexpr (How == rounding::nearest_nearly)
    return encode_nearly<C>(y, masks.unsure);
  else if constexpr (takes_noise<Storage, How>)
    return encode_at_random<C, R>(y, x > F(0.0f), masks.noise);
  else if constexpr (How == rounding::fading_moment && R == range::any)
    return encode_fading<C>(y, masks.fading);
  else if constexpr (How == rounding::moment_nearly)
    return encode_moment_nearly<C, R>(y, x > F(0.0f), masks.unsure);
  else
    return encode_moment<C, R>(y, x > F(0.0f));
}

}  // namespace memfit::detail
