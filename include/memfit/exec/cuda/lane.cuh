// One value per thread of a whole warp that runs in step: the F of the CUDA driver.
// Used by the CUDA driver's kernels; rules and codecs meet it as their template argument.
#pragma once

#include <cstdint>

#include "memfit/core/lanes.hpp"
#include "memfit/core/types.hpp"

namespace memfit::warp {

inline constexpr int lanes = 32;
inline constexpr std::uint32_t everyone = 0xffffffffu;

/// This thread's place in its warp.
__device__ inline int lane() {
  return static_cast<int>(threadIdx.x % lanes);
}

struct u32 {
  std::uint32_t v;
  u32() = default;
  MEMFIT_HD u32(std::uint32_t x) : v(x) {}
#define MEMFIT_BINARY(op)                          \
  MEMFIT_HD friend u32 operator op(u32 a, u32 b) { \
    return a.v op b.v;                             \
  }
  MEMFIT_BINARY(+)
  MEMFIT_BINARY(-)
  MEMFIT_BINARY(*)
  MEMFIT_BINARY(&)
  MEMFIT_BINARY(|)
  MEMFIT_BINARY(^)
#undef MEMFIT_BINARY
  MEMFIT_HD friend u32 operator<<(u32 a, int n) {
    return a.v << n;
  }
  MEMFIT_HD friend u32 operator>>(u32 a, int n) {
    return a.v >> n;
  }
#define MEMFIT_COMPARE(op)                          \
  MEMFIT_HD friend bool operator op(u32 a, u32 b) { \
    return a.v op b.v;                              \
  }
  MEMFIT_COMPARE(<)
  MEMFIT_COMPARE(>)
  MEMFIT_COMPARE(==)
#undef MEMFIT_COMPARE
};

/// Two 16-bit patterns in one word: what fp16 values are widened from.
struct u16x2 {
  std::uint32_t v;
  u16x2() = default;
  MEMFIT_HD u16x2(std::uint32_t both) : v(both * 0x10001u) {}
  MEMFIT_HD static u16x2 of(std::uint32_t pair) {
    u16x2 h;
    h.v = pair;
    return h;
  }
  /// For sums and shifts that stay within their halves.
  MEMFIT_HD friend u16x2 operator+(u16x2 a, u16x2 b) { return of(a.v + b.v); }
  MEMFIT_HD friend u16x2 operator&(u16x2 a, u16x2 b) { return of(a.v & b.v); }
  MEMFIT_HD friend u16x2 operator<<(u16x2 a, int n) { return of(a.v << n); }
};

/// Every operation rounds by itself: no product is fused into a sum, whatever the compiler's flags.
struct f32 {
  float v;
  f32() = default;
  MEMFIT_HD f32(float x) : v(x) {}
#if defined(__CUDA_ARCH__)
#define MEMFIT_BINARY(op, intrinsic)               \
  MEMFIT_HD friend f32 operator op(f32 a, f32 b) { \
    return intrinsic(a.v, b.v);                    \
  }
#else
#define MEMFIT_BINARY(op, intrinsic)               \
  MEMFIT_HD friend f32 operator op(f32 a, f32 b) { \
    return a.v op b.v;                             \
  }
#endif
  MEMFIT_BINARY(+, __fadd_rn)
  MEMFIT_BINARY(-, __fsub_rn)
  MEMFIT_BINARY(*, __fmul_rn)
  MEMFIT_BINARY(/, __fdiv_rn)
#undef MEMFIT_BINARY
  MEMFIT_HD friend f32 operator-(f32 a) {
    return -a.v;
  }
#define MEMFIT_COMPARE(op)                          \
  MEMFIT_HD friend bool operator op(f32 a, f32 b) { \
    return a.v op b.v;                              \
  }
  MEMFIT_COMPARE(<)
  MEMFIT_COMPARE(<=)
  MEMFIT_COMPARE(>)
  MEMFIT_COMPARE(>=)
  MEMFIT_COMPARE(==)
#undef MEMFIT_COMPARE
};

// Operations that would take more instructions if they were left to the general templates.
MEMFIT_HD inline f32 abs(f32 a) {
  return fabsf(a.v);
}
MEMFIT_HD inline f32 with_sign_of(f32 b, f32 a) {
  return copysignf(a.v, b.v);
}
#if defined(__CUDA_ARCH__)
template <int N>
MEMFIT_HD inline u32 upper_bits(f32 a) {
  u32 r;
  asm("shr.b32 %0, %1, %2;" : "=r"(r.v) : "f"(a.v), "n"(N));
  return r;
}
MEMFIT_HD inline u32 from_where_negative(std::uint32_t from, u32 n, f32 x) {
  asm("{\n .reg .pred p;\n setp.lt.f32 p, %1, 0f00000000;\n @p sub.u32 %0, %2, %0;\n}"
      : "+r"(n.v)
      : "f"(x.v), "r"(from));
  return n;
}
MEMFIT_HD inline u32 next_where_at_least(u32 n, f32 a, f32 b) {
  asm("{\n .reg .pred p;\n setp.ge.f32 p, %1, %2;\n @p add.u32 %0, %0, 1;\n}"
      : "+r"(n.v)
      : "f"(a.v), "f"(b.v));
  return n;
}
MEMFIT_HD inline u32 high_product_plus(u32 a, u32 b, u32 c) {
  u32 r;
  asm("mad.hi.u32 %0, %1, %2, %3;" : "=r"(r.v) : "r"(a.v), "r"(b.v), "r"(c.v));
  return r;
}
#else
MEMFIT_HD inline u32 high_product_plus(u32 a, u32 b, u32 c) {
  return static_cast<std::uint32_t>(std::uint64_t{a.v} * b.v >> 32) + c;
}
#endif

/// Whether the least of many patterns is below a bound.
class doubt {
 public:
  MEMFIT_HD void note(u32 pattern, std::uint32_t bound) {
    least_ = ops<float>::smaller(least_, pattern.v);
    bound_ = bound;
  }
  MEMFIT_HD operator bool() const { return least_ < bound_; }

 private:
  std::uint32_t least_ = 0xffffffffu, bound_ = 0;
};

/// Bytes of a and b, by the nibbles of Selector from the lowest byte upwards: 0 to 3 are a's, 4 to
/// 7 those of b.
template <unsigned Selector>
__device__ inline std::uint32_t bytes(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "n"(Selector));
  return r;
}
/// The same with zeros in the place of b.
template <unsigned Selector>
__device__ inline std::uint32_t bytes(std::uint32_t a) {
  std::uint32_t r;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(r) : "r"(a), "n"(Selector));
  return r;
}

/// The greater of a and |b|; a NaN is greater than all numbers.
__device__ inline float greater_magnitude(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(fabsf(b)));
  return r;
#else
  auto const x = __float_as_uint(a), y = __float_as_uint(b) & 0x7fffffffu;
  return __uint_as_float(x < y ? y : x);
#endif
}

}  // namespace memfit::warp

namespace memfit {

/// Operations that concern the whole warp, `any` and `lookup`, are for all its threads together.
template <>
struct ops<warp::f32> {
  using value = warp::f32;
  using uint = warp::u32;
  using mask = bool;
  using doubt = warp::doubt;
  static constexpr int width = 1;

  MEMFIT_HD static value fma(value a, value b, value c) { return ops<float>::fma(a.v, b.v, c.v); }
  MEMFIT_HD static value sqrt(value a) { return ops<float>::sqrt(a.v); }
  MEMFIT_HD static value product(value a, value b) { return ops<float>::product(a.v, b.v); }
  MEMFIT_HD static uint bits(value a) { return ops<float>::bits(a.v); }
  MEMFIT_HD static value from_bits(uint u) { return ops<float>::from_bits(u.v); }
  MEMFIT_HD static value to_float(uint u) { return ops<float>::to_float(u.v); }
  MEMFIT_HD static uint truncate(value a) { return ops<float>::truncate(a.v); }
  MEMFIT_HD static value select(bool m, value a, value b) { return m ? a.v : b.v; }
  MEMFIT_HD static uint select(bool m, uint a, uint b) { return m ? a.v : b.v; }
  MEMFIT_HD static uint larger(uint a, uint b) { return ops<float>::larger(a.v, b.v); }
  MEMFIT_HD static uint smaller(uint a, uint b) { return ops<float>::smaller(a.v, b.v); }
  MEMFIT_HD static uint subtract_where(bool m, uint a, uint b) { return m ? a.v - b.v : a.v; }
  MEMFIT_HD static bool test(uint a, uint b) { return (a.v & b.v) != 0; }
  MEMFIT_HD static value load(float const* p) { return *p; }
  MEMFIT_HD static void store(float* p, value a) { *p = a.v; }
#if defined(__CUDA_ARCH__)
  MEMFIT_HD static uint merge(uint where, uint a, uint b) {
    std::uint32_t r;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(r) : "r"(where.v), "r"(a.v), "r"(b.v));
    return r;
  }
  MEMFIT_HD static value greater(value a, value b) {
    return fmaxf(a.v, b.v);
  }
  MEMFIT_HD static value twice_root_nearly(value a, float plus) {
    value r;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r.v) : "f"(a.v));
    return fma(r, 2.0f, plus);
  }
  MEMFIT_HD static value quotient_nearly(value a, value b) {
    value r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r.v) : "f"(b.v));
    return a * r;
  }
  /// What the compiler makes of a division, but for the tests of extreme numbers.
  MEMFIT_HD static value quotient_of_counts(value a, value b) {
    value const guess = quotient_nearly(1.0f, b);
    value const inverse = fma(fma(-b, guess, 1.0f), guess, guess);
    value q = a * inverse;
    for (int i = 0; i < 2; ++i) q = fma(fma(-b, q, a), inverse, q);
    return q;
  }
  MEMFIT_HD static void from_fp16(warp::u16x2 pair, value& low, value& high) {
    asm("{\n .reg .b16 l, h;\n mov.b32 {l, h}, %2;\n cvt.f32.f16 %0, l;\n cvt.f32.f16 %1, h;\n}"
        : "=f"(low.v), "=f"(high.v)
        : "r"(pair.v));
  }
  MEMFIT_HD static bool any(bool m) {
    return __any_sync(warp::everyone, m) != 0;
  }
  template <class T>
  MEMFIT_HD static auto lookup(T const (&table)[8], uint index) {
    return ask<8>(chosen(table, threadIdx.x), index);
  }
  template <class T>
  MEMFIT_HD static auto lookup(T const (&table)[16], uint index) {
    return ask<16>(table[threadIdx.x % 16], index);
  }
  MEMFIT_HD static value lookup(float const (&table)[32], uint index) {
    value r;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=f"(r.v)
                 : "f"(table[threadIdx.x % warp::lanes]), "r"(index.v));
    return r;
  }
  MEMFIT_HD static uint lookup(std::uint32_t const (&table)[32], uint index) {
    return __shfl_sync(warp::everyone, table[threadIdx.x % warp::lanes], static_cast<int>(index.v));
  }
#else
  MEMFIT_HD static uint merge(uint where, uint a, uint b) {
    return ops<float>::merge(where.v, a.v, b.v);
  }
  MEMFIT_HD static value greater(value a, value b) {
    return ops<float>::greater(a.v, b.v);
  }
  MEMFIT_HD static void from_fp16(warp::u16x2 pair, value& low, value& high) {
    low = detail::float_from_fp16<float>(pair.v & 0xffffu);
    high = detail::float_from_fp16<float>(pair.v >> 16);
  }
  MEMFIT_HD static bool any(bool m) {
    return m;
  }
  template <class T>
  MEMFIT_HD static auto lookup(T const (&table)[8], uint index) {
    return ask<8>(ops<float>::lookup(table, index.v), index);
  }
  template <class T, int N>
  MEMFIT_HD static auto lookup(T const (&table)[N], uint index) {
    return ask<N>(table[index.v % N], index);
  }
#endif

 private:
  /// table[i mod 8] without memory: the entry that this thread holds for the others to ask for.
  template <class T>
  MEMFIT_HD static T chosen(T const (&t)[8], unsigned i) {
    T const pairs[4] = {(i & 1u) != 0 ? t[1] : t[0], (i & 1u) != 0 ? t[3] : t[2],
                        (i & 1u) != 0 ? t[5] : t[4], (i & 1u) != 0 ? t[7] : t[6]};
    T const low = (i & 2u) != 0 ? pairs[1] : pairs[0];
    T const high = (i & 2u) != 0 ? pairs[3] : pairs[2];
    return (i & 4u) != 0 ? high : low;
  }
#if defined(__CUDA_ARCH__)
  template <int N>
  MEMFIT_HD static value ask(float mine, uint index) {
    return __shfl_sync(warp::everyone, mine, static_cast<int>(index.v), N);
  }
  template <int N>
  MEMFIT_HD static uint ask(std::uint32_t mine, uint index) {
    return __shfl_sync(warp::everyone, mine, static_cast<int>(index.v), N);
  }
#else
  template <int>
  MEMFIT_HD static value ask(float entry, uint) {
    return entry;
  }
  template <int>
  MEMFIT_HD static uint ask(std::uint32_t entry, uint) {
    return entry;
  }
#endif
};

template <>
struct ops<warp::u32> : ops<warp::f32> {};

}  // namespace memfit
