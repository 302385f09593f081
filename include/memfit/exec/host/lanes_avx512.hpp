// Sixteen values at a time with AVX-512, in functions that carry their target with them.
// Used by the host driver when the machine has AVX-512; a plain x86-64 build needs no flag for it.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "memfit/core/lanes.hpp"
#include "memfit/exec/host/lanes_pair.hpp"

#define MEMFIT_TARGET_AVX512 \
  gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2")
#define MEMFIT_AVX512_HOST [[MEMFIT_TARGET_AVX512]] inline
// Rules and codecs are device functions too, and may only call such: so are these, in name.
#if defined(__CUDACC__)
#define MEMFIT_AVX512 _Pragma("nv_exec_check_disable") __host__ __device__ MEMFIT_AVX512_HOST
#else
#define MEMFIT_AVX512 MEMFIT_AVX512_HOST
#endif

namespace memfit::avx512 {

// Arrays, not vector types, so that no calling convention depends on the caller's flags; the copy
// constructors are written out so that values travel by reference where nothing is inlined.

template <int Predicate>
MEMFIT_AVX512_HOST std::uint16_t compare(__m512 a, __m512 b) {
  return _mm512_cmp_ps_mask(a, b, Predicate);
}
MEMFIT_AVX512_HOST __m512i shift_left(__m512i x, int n) {
  return reinterpret_cast<__m512i>(reinterpret_cast<__v16su>(x) << n);
}
MEMFIT_AVX512_HOST __m512i shift_right(__m512i x, int n) {
  return reinterpret_cast<__m512i>(reinterpret_cast<__v16su>(x) >> n);
}

MEMFIT_AVX512_HOST __m512i merge_bits(__m512i where, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi32(where, a, b, 0xca);
}
MEMFIT_AVX512_HOST __m256i load_words(std::uint16_t const* p) {
  return _mm256_load_si256(reinterpret_cast<__m256i const*>(p));
}
MEMFIT_AVX512_HOST void store_words(std::uint16_t* p, __m256i x) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(p), x);
}
MEMFIT_AVX512_HOST __m256i shift_words_left(__m256i x, int n) {
  return reinterpret_cast<__m256i>(reinterpret_cast<__v16hu>(x) << n);
}

/// A product that the compiler cannot fuse into a sum: the intrinsic alone does not prevent it.
MEMFIT_AVX512_HOST __m512 multiply(__m512 a, __m512 b) {
  auto p = _mm512_mul_ps(a, b);
  asm("" : "+v"(p));
  return p;
}

struct mask {
  std::uint16_t m;
  MEMFIT_AVX512 friend mask operator&(mask a, mask b) {
    return {static_cast<std::uint16_t>(a.m & b.m)};
  }
  MEMFIT_AVX512 friend mask operator|(mask a, mask b) {
    return {static_cast<std::uint16_t>(a.m | b.m)};
  }
  MEMFIT_AVX512 friend mask operator!(mask a) { return {static_cast<std::uint16_t>(~a.m)}; }
};

struct u32 {
  alignas(64) std::uint32_t v[16];
  u32() = default;
  MEMFIT_AVX512 u32(std::uint32_t x) {
    _mm512_store_si512(v, _mm512_set1_epi32(static_cast<int>(x)));
  }
  MEMFIT_AVX512 u32(u32 const& o) { _mm512_store_si512(v, _mm512_load_si512(o.v)); }
  MEMFIT_AVX512 u32& operator=(u32 const& o) {
    _mm512_store_si512(v, _mm512_load_si512(o.v));
    return *this;
  }
#define MEMFIT_BINARY(op, intrinsic)                                                    \
  MEMFIT_AVX512 friend u32 operator op(u32 const& a, u32 const& b) {                    \
    u32 r;                                                                              \
    _mm512_store_si512(r.v, intrinsic(_mm512_load_si512(a.v), _mm512_load_si512(b.v))); \
    return r;                                                                           \
  }
  MEMFIT_BINARY(+, _mm512_add_epi32)
  MEMFIT_BINARY(-, _mm512_sub_epi32)
  MEMFIT_BINARY(*, _mm512_mullo_epi32)
  MEMFIT_BINARY(&, _mm512_and_si512)
  MEMFIT_BINARY(|, _mm512_or_si512)
  MEMFIT_BINARY(^, _mm512_xor_si512)
#undef MEMFIT_BINARY
  MEMFIT_AVX512 friend u32 operator<<(u32 const& a, int n) {
    u32 r;
    _mm512_store_si512(r.v, shift_left(_mm512_load_si512(a.v), n));
    return r;
  }
  MEMFIT_AVX512 friend u32 operator>>(u32 const& a, int n) {
    u32 r;
    _mm512_store_si512(r.v, shift_right(_mm512_load_si512(a.v), n));
    return r;
  }
#define MEMFIT_COMPARE(op, intrinsic)                                   \
  MEMFIT_AVX512 friend mask operator op(u32 const& a, u32 const& b) {   \
    return {intrinsic(_mm512_load_si512(a.v), _mm512_load_si512(b.v))}; \
  }
  MEMFIT_COMPARE(<, _mm512_cmplt_epu32_mask)
  MEMFIT_COMPARE(>, _mm512_cmpgt_epu32_mask)
  MEMFIT_COMPARE(==, _mm512_cmpeq_epu32_mask)
#undef MEMFIT_COMPARE
};

/// Sixteen 16-bit patterns: what fp16 values are widened from.
struct u16 {
  alignas(32) std::uint16_t v[16];
  u16() = default;
  MEMFIT_AVX512 u16(std::uint32_t x) { store_words(v, _mm256_set1_epi16(static_cast<short>(x))); }
  MEMFIT_AVX512 u16(u16 const& o) { store_words(v, load_words(o.v)); }
  MEMFIT_AVX512 u16& operator=(u16 const& o) {
    store_words(v, load_words(o.v));
    return *this;
  }
  MEMFIT_AVX512 friend u16 operator+(u16 const& a, u16 const& b) {
    u16 r;
    store_words(r.v, _mm256_add_epi16(load_words(a.v), load_words(b.v)));
    return r;
  }
  MEMFIT_AVX512 friend u16 operator&(u16 const& a, u16 const& b) {
    u16 r;
    store_words(r.v, _mm256_and_si256(load_words(a.v), load_words(b.v)));
    return r;
  }
  MEMFIT_AVX512 friend u16 operator<<(u16 const& a, int n) {
    u16 r;
    store_words(r.v, shift_words_left(load_words(a.v), n));
    return r;
  }
};

struct f32 {
  alignas(64) float v[16];
  f32() = default;
  MEMFIT_AVX512 f32(float x) { _mm512_store_ps(v, _mm512_set1_ps(x)); }
  MEMFIT_AVX512 f32(f32 const& o) { _mm512_store_ps(v, _mm512_load_ps(o.v)); }
  MEMFIT_AVX512 f32& operator=(f32 const& o) {
    _mm512_store_ps(v, _mm512_load_ps(o.v));
    return *this;
  }
#define MEMFIT_BINARY(op, intrinsic)                                           \
  MEMFIT_AVX512 friend f32 operator op(f32 const& a, f32 const& b) {           \
    f32 r;                                                                     \
    _mm512_store_ps(r.v, intrinsic(_mm512_load_ps(a.v), _mm512_load_ps(b.v))); \
    return r;                                                                  \
  }
  MEMFIT_BINARY(+, _mm512_add_ps)
  MEMFIT_BINARY(-, _mm512_sub_ps)
  MEMFIT_BINARY(*, multiply)
  MEMFIT_BINARY(/, _mm512_div_ps)
#undef MEMFIT_BINARY
  MEMFIT_AVX512 friend f32 operator-(f32 const& a) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_xor_ps(_mm512_load_ps(a.v), _mm512_set1_ps(-0.0f)));
    return r;
  }
#define MEMFIT_COMPARE(op, predicate)                                      \
  MEMFIT_AVX512 friend mask operator op(f32 const& a, f32 const& b) {      \
    return {compare<predicate>(_mm512_load_ps(a.v), _mm512_load_ps(b.v))}; \
  }
  MEMFIT_COMPARE(<, _CMP_LT_OQ)
  MEMFIT_COMPARE(>, _CMP_GT_OQ)
  MEMFIT_COMPARE(<=, _CMP_LE_OQ)
  MEMFIT_COMPARE(>=, _CMP_GE_OQ)
  MEMFIT_COMPARE(==, _CMP_EQ_OQ)
#undef MEMFIT_COMPARE
};

}  // namespace memfit::avx512

namespace memfit {

namespace avx512 {

/// Runs a body with everything it calls compiled for these units.
template <class Body>
[[MEMFIT_TARGET_AVX512, gnu::flatten, gnu::noinline]] void run(Body const& body);

}  // namespace avx512

template <>
struct ops<avx512::f32> {
  using f32 = avx512::f32;
  using value = f32;
  using uint = avx512::u32;
  using uint16 = avx512::u16;
  using mask = avx512::mask;
  /// Runs a body of code apart from the caller's, so as not to burden it.
  template <class Body>
  static void apart(Body const& body) {
    avx512::run(body);
  }
  static constexpr int width = 16;

  MEMFIT_AVX512 static f32 fma(f32 const& a, f32 const& b, f32 const& c) {
    f32 r;
    _mm512_store_ps(r.v,
                    _mm512_fmadd_ps(_mm512_load_ps(a.v), _mm512_load_ps(b.v), _mm512_load_ps(c.v)));
    return r;
  }
  MEMFIT_AVX512 static f32 product(f32 const& a, f32 const& b) { return a * b; }
  MEMFIT_AVX512 static f32 sqrt(f32 const& a) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_maskz_sqrt_ps(0xffff, _mm512_load_ps(a.v)));
    return r;
  }
  /// One step from an estimate of 14 bits: the unit that takes roots is slow, and busy with rules.
  /// Of a root s it makes s (3 - s^2 / a), which is twice the next estimate.
  MEMFIT_AVX512 static f32 twice_root_nearly(f32 const& a, float plus) {
    f32 r;
    auto const x = _mm512_load_ps(a.v);
    auto const y = _mm512_maskz_rsqrt14_ps(0xffff, x), s = _mm512_mul_ps(x, y);
    auto const rest = _mm512_fnmadd_ps(s, y, _mm512_set1_ps(3.0f));
    _mm512_store_ps(r.v, _mm512_fmadd_ps(s, rest, _mm512_set1_ps(plus)));
    return r;
  }
  MEMFIT_AVX512 static uint bits(f32 const& a) {
    uint r;
    _mm512_store_si512(r.v, _mm512_castps_si512(_mm512_load_ps(a.v)));
    return r;
  }
  MEMFIT_AVX512 static f32 from_bits(uint const& a) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_castsi512_ps(_mm512_load_si512(a.v)));
    return r;
  }
  MEMFIT_AVX512 static f32 to_float(uint const& a) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_maskz_cvtepi32_ps(0xffff, _mm512_load_si512(a.v)));
    return r;
  }
  MEMFIT_AVX512 static uint truncate(f32 const& a) {
    uint r;
    _mm512_store_si512(r.v, _mm512_maskz_cvttps_epi32(0xffff, _mm512_load_ps(a.v)));
    return r;
  }
  MEMFIT_AVX512 static f32 select(mask m, f32 const& a, f32 const& b) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_mask_blend_ps(m.m, _mm512_load_ps(b.v), _mm512_load_ps(a.v)));
    return r;
  }
  MEMFIT_AVX512 static uint select(mask m, uint const& a, uint const& b) {
    uint r;
    _mm512_store_si512(
        r.v, _mm512_mask_blend_epi32(m.m, _mm512_load_si512(b.v), _mm512_load_si512(a.v)));
    return r;
  }
  MEMFIT_AVX512 static uint larger(uint const& a, uint const& b) {
    uint r;
    _mm512_store_si512(
        r.v, _mm512_maskz_max_epu32(0xffff, _mm512_load_si512(a.v), _mm512_load_si512(b.v)));
    return r;
  }
  MEMFIT_AVX512 static uint smaller(uint const& a, uint const& b) {
    uint r;
    _mm512_store_si512(
        r.v, _mm512_maskz_min_epu32(0xffff, _mm512_load_si512(a.v), _mm512_load_si512(b.v)));
    return r;
  }
  MEMFIT_AVX512 static uint merge(uint const& where, uint const& a, uint const& b) {
    uint r;
    _mm512_store_si512(r.v, avx512::merge_bits(_mm512_load_si512(where.v), _mm512_load_si512(a.v),
                                               _mm512_load_si512(b.v)));
    return r;
  }
  MEMFIT_AVX512 static uint subtract_where(mask m, uint const& a, uint const& b) {
    uint r;
    _mm512_store_si512(r.v, _mm512_mask_sub_epi32(_mm512_load_si512(a.v), m.m,
                                                  _mm512_load_si512(a.v), _mm512_load_si512(b.v)));
    return r;
  }
  MEMFIT_AVX512 static mask test(uint const& a, uint const& b) {
    return {_mm512_test_epi32_mask(_mm512_load_si512(a.v), _mm512_load_si512(b.v))};
  }
  MEMFIT_AVX512 static f32 greater(f32 const& a, f32 const& b) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_maskz_max_ps(0xffff, _mm512_load_ps(a.v), _mm512_load_ps(b.v)));
    return r;
  }
  MEMFIT_AVX512 static bool any(mask m) { return m.m != 0; }
  MEMFIT_AVX512 static f32 lookup(float const (&table)[8], uint const& index) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_maskz_permutexvar_ps(
                             0xffff, _mm512_load_si512(index.v),
                             _mm512_maskz_broadcast_f32x8(0xffff, _mm256_loadu_ps(table))));
    return r;
  }
  MEMFIT_AVX512 static uint lookup(std::uint32_t const (&table)[8], uint const& index) {
    uint r;
    _mm512_store_si512(r.v, _mm512_maskz_permutexvar_epi32(
                                0xffff, _mm512_load_si512(index.v),
                                _mm512_maskz_broadcast_i32x8(0xffff, _mm256_loadu_epi32(table))));
    return r;
  }
  MEMFIT_AVX512 static f32 lookup(float const (&table)[16], uint const& index) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_maskz_permutexvar_ps(0xffff, _mm512_load_si512(index.v),
                                                     _mm512_loadu_ps(table)));
    return r;
  }

  MEMFIT_AVX512_HOST static std::uint32_t largest(uint const& a) {
    auto x = _mm512_load_si512(a.v);
    auto y = _mm256_max_epu32(_mm512_maskz_extracti64x4_epi64(0xf, x, 0),
                              _mm512_maskz_extracti64x4_epi64(0xf, x, 1));
    auto z = _mm_max_epu32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
    z = _mm_max_epu32(z, _mm_shuffle_epi32(z, 0x4e));
    z = _mm_max_epu32(z, _mm_shuffle_epi32(z, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(z));
  }
  MEMFIT_AVX512_HOST static int count(mask m) { return __builtin_popcount(m.m); }
  MEMFIT_AVX512_HOST static uint iota(std::uint32_t first) {
    uint r;
    _mm512_store_si512(r.v, _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)),
                                             _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                                               12, 13, 14, 15)));
    return r;
  }
  MEMFIT_AVX512_HOST static f32 load(float const* p) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_loadu_ps(p));
    return r;
  }
  MEMFIT_AVX512_HOST static avx512::u16 load_patterns(std::uint16_t const* p) {
    avx512::u16 r;
    avx512::store_words(r.v, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p)));
    return r;
  }
  MEMFIT_AVX512_HOST static avx512::u16 load_patterns(std::uint8_t const* p) {
    avx512::u16 r;
    auto const x = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
    avx512::store_words(r.v, _mm256_cvtepu8_epi16(x));
    return r;
  }
  MEMFIT_AVX512_HOST static f32 from_fp16(avx512::u16 const& h) {
    f32 r;
    _mm512_store_ps(r.v, _mm512_maskz_cvtph_ps(0xffff, avx512::load_words(h.v)));
    return r;
  }
  MEMFIT_AVX512_HOST static void store(float* p, f32 const& a) {
    _mm512_storeu_ps(p, _mm512_load_ps(a.v));
  }
  MEMFIT_AVX512_HOST static uint load(std::uint32_t const* p) {
    uint r;
    _mm512_store_si512(r.v, _mm512_loadu_si512(p));
    return r;
  }
  MEMFIT_AVX512_HOST static uint load(std::uint16_t const* p) {
    uint r;
    auto const x = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p));
    _mm512_store_si512(r.v, _mm512_maskz_cvtepu16_epi32(0xffff, x));
    return r;
  }
  MEMFIT_AVX512_HOST static uint load(std::uint8_t const* p) {
    uint r;
    auto const x = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
    _mm512_store_si512(r.v, _mm512_maskz_cvtepu8_epi32(0xffff, x));
    return r;
  }
  /// Half bytes, the low one of each byte first.
  MEMFIT_AVX512_HOST static uint load_halves(std::uint8_t const* p) {
    uint r;
    auto const x = _mm_loadu_si64(p);
    auto const y = _mm_unpacklo_epi8(x, _mm_srli_epi16(x, 4));
    auto const z = _mm_and_si128(y, _mm_set1_epi8(0xf));
    _mm512_store_si512(r.v, _mm512_maskz_cvtepu8_epi32(0xffff, z));
    return r;
  }
  MEMFIT_AVX512_HOST static void store_halves(std::uint8_t* p, uint const& a) {
    auto const x = _mm512_maskz_cvtepi32_epi8(0xffff, _mm512_load_si512(a.v));
    auto const y = _mm_and_si128(x, _mm_set1_epi8(0xf));
    auto const pairs = _mm_maddubs_epi16(y, _mm_set1_epi16(0x1001));
    _mm_storeu_si64(p, _mm_packus_epi16(pairs, pairs));
  }
  MEMFIT_AVX512_HOST static void store(std::uint32_t* p, uint const& a) {
    _mm512_storeu_si512(p, _mm512_load_si512(a.v));
  }
  MEMFIT_AVX512_HOST static void store(std::uint16_t* p, uint const& a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_maskz_cvtepi32_epi16(0xffff, _mm512_load_si512(a.v)));
  }
  MEMFIT_AVX512_HOST static void store(std::uint8_t* p, uint const& a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm512_maskz_cvtepi32_epi8(0xffff, _mm512_load_si512(a.v)));
  }
};

template <>
struct ops<avx512::u32> : ops<avx512::f32> {};

namespace avx512 {

template <class Body>
[[MEMFIT_TARGET_AVX512, gnu::flatten, gnu::noinline]] void run(Body const& body) {
  body.template operator()<paired::f32<f32>>();
}

}  // namespace avx512

}  // namespace memfit

#undef MEMFIT_AVX512
#undef MEMFIT_AVX512_HOST
#undef MEMFIT_TARGET_AVX512
