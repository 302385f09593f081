// The 16-bit and 32-bit scalar types as plain structs, and their exact conversions.
// Used by tensors and codecs; the same names choose a state format or a parameter column.
#pragma once

#include <cstdint>

#include "memfit/core/config.hpp"
#include "memfit/core/lanes.hpp"

namespace memfit {

namespace detail {

/// bf16 pattern of a float, to nearest, ties to even; a NaN stays a (quiet) NaN.
template <class F>
MEMFIT_HD inline uint_of<F> bf16_bits(F const& x) {
  auto const u = bits(x);
  auto const rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  auto const nan = (u & 0x7fffffffu) > uint_of<F>(0x7f800000u);
  return select(nan, (u >> 16) | 0x40u, rounded);
}

template <class F>
MEMFIT_HD inline F float_from_bf16(uint_of<F> const& h) {
  return from_bits<F>(h << 16);
}

/// fp16 pattern of a float, to nearest, ties to even; overflow gives infinity, a NaN a quiet NaN.
template <class F>
MEMFIT_HD inline uint_of<F> fp16_bits(F const& x) {
  auto const u = bits(x);
  auto const a = u & 0x7fffffffu;
  auto const sign = (u >> 16) & 0x8000u;
  // Below 2^-14 the spacing is 2^-24, that of floats from 0.5 to 1: adding 0.5 rounds to it.
  auto const subnormal = bits(from_bits<F>(a) + 0.5f) - 0x3f000000u;
  auto const normal = ((a + 0xfffu + ((a >> 13) & 1u)) >> 13) - (112u << 10);
  auto const finite = select(a < uint_of<F>(0x38800000u), subnormal, normal);
  auto const inf_or_nan =
      select(a > uint_of<F>(0x7f800000u), 0x7e00u | ((a >> 13) & 0x3ffu), uint_of<F>(0x7c00u));
  return sign | select(a < uint_of<F>(0x477ff000u), finite, inf_or_nan);
}

template <class F>
MEMFIT_HD inline F float_from_fp16(uint_of<F> const& h) {
  auto const sign = (h & 0x8000u) << 16;
  auto const a = (h & 0x7fffu) << 13;
  auto const normal = a + (112u << 23);
  auto const subnormal = bits(from_bits<F>(a + (113u << 23)) - 0x1p-14f);
  auto const quiet = select(a > uint_of<F>(31u << 23), uint_of<F>(1u << 22), uint_of<F>(0u));
  auto const inf_or_nan = a | (255u << 23) | quiet;
  auto const finite = select(a < uint_of<F>(1u << 23), subnormal, normal);
  return from_bits<F>(sign | select(a < uint_of<F>(31u << 23), finite, inf_or_nan));
}

}  // namespace detail

/// IEEE binary16: 5 exponent bits, 10 mantissa bits; largest value 65504. 2 bytes.
struct fp16 {
  std::uint16_t bits = 0;
  fp16() = default;
  /// Rounds to nearest, ties to even.
  MEMFIT_HD explicit fp16(float x) : bits(static_cast<std::uint16_t>(detail::fp16_bits(x))) {}
  MEMFIT_HD explicit operator float() const {
    return detail::float_from_fp16<float>(std::uint32_t{bits});
  }
};

/// bfloat16: the upper half of a float, 8 exponent bits, 7 mantissa bits. 2 bytes.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  /// Rounds to nearest, ties to even.
  MEMFIT_HD explicit bf16(float x) : bits(static_cast<std::uint16_t>(detail::bf16_bits(x))) {}
  MEMFIT_HD explicit operator float() const {
    return detail::float_from_bf16<float>(std::uint32_t{bits});
  }
};

/// IEEE binary32, layout-compatible with float. 4 bytes.
struct fp32 {
  float value = 0;
  fp32() = default;
  MEMFIT_HD explicit fp32(float x) : value(x) {}
  MEMFIT_HD explicit operator float() const { return value; }
};

}  // namespace memfit
