// Double arithmetic for the constants of a step: the same bits on the host and on the device.
// Used by rules, whose constants are computed where the step counter lives.
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
