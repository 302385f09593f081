// Double arithmetic for the few numbers of a step: the same bits on the host and on the device.
// Used by rules, the loss scaler and clipping, which compute where their numbers live.
#pragma once

#include <cstdint>

#include "memfit/core/config.hpp"
#include "memfit/core/lanes.hpp"

namespace memfit {

template <>
struct ops<double> {
  MEMFIT_HD static double sqrt(double a) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(a);
#else
    return __builtin_sqrt(a);
#endif
  }
  MEMFIT_HD static double product(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return detail::rounded(a * b);
#endif
  }
};

/// Whether x is neither infinite nor a NaN; by its pattern, so that fast-math builds know, too.
MEMFIT_HD inline bool is_finite(double x) {
  std::uint64_t u;
  __builtin_memcpy(&u, &x, sizeof u);
  return (u & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

/// base to the power of a whole number, 0 or more; within n roundings of a double.
MEMFIT_HD inline double power(double base, std::int64_t n) {
  double result = 1.0;
  for (; n > 0; n >>= 1) {
    if ((n & 1) != 0) result = product(result, base);
    base = product(base, base);
  }
  return result;
}

}  // namespace memfit
