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

/// Natural logarithm of a normal x above zero; within 1e-15 of it, relatively.
MEMFIT_HD inline double logarithm(double x) {
  std::uint64_t u;
  __builtin_memcpy(&u, &x, sizeof u);
  double exponent = static_cast<double>(u >> 52) - 1023.0;
  u = (u & 0x000fffffffffffffu) | 0x3ff0000000000000u;
  double m;  // in [1, 2), then in [0.7, 1.4)
  __builtin_memcpy(&m, &u, sizeof m);
  if (m > 1.4) m = product(m, 0.5), exponent += 1.0;
  double const s = (m - 1.0) / (m + 1.0), square = product(s, s);
  double series = 0.0;
  for (int n = 23; n > 0; n -= 2) series = product(series, square) + 1.0 / n;
  return product(exponent, 0x1.62e42fefa39efp-1) + product(2.0, product(s, series));
}

/// e to the power of x, which is at most 0 and no bare product (see product); within 1e-15 of it
/// for x above -2, 0 below -700.
MEMFIT_HD inline double exponential(double x) {
  if (!(x >= -700.0)) return 0.0;
  auto const twos = static_cast<std::int64_t>(product(x, 0x1.71547652b82fep0) - 0.5);
  double const rest = x - product(static_cast<double>(twos), 0x1.62e42fefa39efp-1);
  double series = 1.0;
  for (int n = 14; n > 0; --n) series = product(series, rest) / n + 1.0;
  auto const u = static_cast<std::uint64_t>(twos + 1023) << 52;
  double scale;
  __builtin_memcpy(&scale, &u, sizeof scale);
  return product(series, scale);
}

}  // namespace memfit
