// Which vector units the host driver uses, found at run time.
// Used by host; users name one only to compare them.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

#include "memfit/exec/host/lanes_avx2.hpp"
#include "memfit/exec/host/lanes_avx512.hpp"
#endif
#include "memfit/core/lanes.hpp"

namespace memfit {

/// The vector units of a host step; `best` is the widest that this machine has.
enum class isa { best, scalar, avx2, avx512 };

namespace detail {

#if defined(__x86_64__)
/// Processors with AVX2 convert fp16, but a virtual machine may hide it; not every compiler asks.
inline bool converts_fp16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
}
#endif

inline bool machine_has(isa which) {
#if defined(__x86_64__)
  switch (which) {
    case isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             machine_has(isa::avx2);
    case isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && converts_fp16() &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    default:
      return true;
  }
#else
  return which == isa::best || which == isa::scalar;
#endif
}

inline isa widest_isa() {
  if (machine_has(isa::avx512)) return isa::avx512;
  return machine_has(isa::avx2) ? isa::avx2 : isa::scalar;
}

/// Calls body.operator()<F>() with the lanes of the given units. The scalar form stands for
/// machines without wide units.
template <class Body>
void run_on(isa which, Body const& body) {
#if defined(__x86_64__)
  if (which == isa::avx512) return avx512::run(body);
  if (which == isa::avx2) return avx2::run(body);
#endif
  body.template operator()<float>();
}

}  // namespace detail

}  // namespace memfit
