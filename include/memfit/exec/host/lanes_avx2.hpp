// Eight values at a time with AVX2 and FMA, in functions that carry their target with them.
// Used by the host driver where AVX-512 is missing; a plain x86-64 build needs no flag for it.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "memfit/core/lanes.hpp"

#define MEMFIT_TARGET_AVX2 gnu::target("avx2,fma,f16c,bmi,bmi2")
#define MEMFIT_AVX2_HOST [[MEMFIT_TARGET_AVX2]] inline
#if defined(__CUDACC__)
#define MEMFIT_AVX2 _Pragma("nv_exec_check_disable") __host__ __device__ MEMFIT_AVX2_HOST
#else
#define MEMFIT_AVX2 MEMFIT_AVX2_HOST
#endif

namespace memfit::avx2 {

// Arrays and written-out copies for the reasons given in lanes_avx512.hpp.

#define MEMFIT_LOAD(a) avx2::load_int((a).v)
#define MEMFIT_STORE(a, x) avx2::store_int((a).v, x)

MEMFIT_AVX2_HOST __m256i load_int(std::uint32_t const* p) {
  return _mm256_load_si256(reinterpret_cast<__m256i const*>(p));
}
MEMFIT_AVX2_HOST void store_int(std::uint32_t* p, __m256i x) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(p), x);
}
MEMFIT_AVX2_HOST __m256i loadu_int(void const* p) {
  return _mm256_loadu_si256(static_cast<__m256i const*>(p));
}
template <int Predicate>
MEMFIT_AVX2_HOST __m256i compare(__m256 a, __m256 b) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, b, Predicate));
}
MEMFIT_AVX2_HOST __m256i shift_left(__m256i x, int n) {
  return reinterpret_cast<__m256i>(reinterpret_cast<__v8su>(x) << n);
}
MEMFIT_AVX2_HOST __m256i shift_right(__m256i x, int n) {
  return reinterpret_cast<__m256i>(reinterpret_cast<__v8su>(x) >> n);
}
MEMFIT_AVX2_HOST __m256i greater(__m256i a, __m256i b) {
  auto const flip = _mm256_set1_epi32(INT32_MIN);
  return _mm256_cmpgt_epi32(_mm256_xor_si256(a, flip), _mm256_xor_si256(b, flip));
}

MEMFIT_AVX2_HOST __m128i load_words(std::uint16_t const* p) {
  return _mm_load_si128(reinterpret_cast<__m128i const*>(p));
}
MEMFIT_AVX2_HOST void store_words(std::uint16_t* p, __m128i x) {
  _mm_store_si128(reinterpret_cast<__m128i*>(p), x);
}
MEMFIT_AVX2_HOST __m128i shift_words_left(__m128i x, int n) {
  return reinterpret_cast<__m128i>(reinterpret_cast<__v8hu>(x) << n);
}

/// A product that the compiler cannot fuse into a sum: the intrinsic alone does not prevent it.
MEMFIT_AVX2_HOST __m256 multiply(__m256 a, __m256 b) {
  auto p = _mm256_mul_ps(a, b);
  asm("" : "+v"(p));
  return p;
}

struct mask {
  alignas(32) std::uint32_t v[8];
  mask() = default;
  MEMFIT_AVX2 mask(mask const& o) { MEMFIT_STORE(*this, MEMFIT_LOAD(o)); }
  MEMFIT_AVX2 mask& operator=(mask const& o) {
    MEMFIT_STORE(*this, MEMFIT_LOAD(o));
    return *this;
  }
  MEMFIT_AVX2 friend mask operator&(mask const& a, mask const& b) {
    mask r;
    MEMFIT_STORE(r, _mm256_and_si256(MEMFIT_LOAD(a), MEMFIT_LOAD(b)));
    return r;
  }
  MEMFIT_AVX2 friend mask operator|(mask const& a, mask const& b) {
    mask r;
    MEMFIT_STORE(r, _mm256_or_si256(MEMFIT_LOAD(a), MEMFIT_LOAD(b)));
    return r;
  }
  MEMFIT_AVX2 friend mask operator!(mask const& a) {
    mask r;
    MEMFIT_STORE(r, _mm256_xor_si256(MEMFIT_LOAD(a), _mm256_set1_epi32(-1)));
    return r;
  }
};

struct u32 {
  alignas(32) std::uint32_t v[8];
  u32() = default;
  MEMFIT_AVX2 u32(std::uint32_t x) { MEMFIT_STORE(*this, _mm256_set1_epi32(static_cast<int>(x))); }
  MEMFIT_AVX2 u32(u32 const& o) { MEMFIT_STORE(*this, MEMFIT_LOAD(o)); }
  MEMFIT_AVX2 u32& operator=(u32 const& o) {
    MEMFIT_STORE(*this, MEMFIT_LOAD(o));
    return *this;
  }
#define MEMFIT_BINARY(op, intrinsic)                               \
  MEMFIT_AVX2 friend u32 operator op(u32 const& a, u32 const& b) { \
    u32 r;                                                         \
    MEMFIT_STORE(r, intrinsic(MEMFIT_LOAD(a), MEMFIT_LOAD(b)));    \
    return r;                                                      \
  }
  MEMFIT_BINARY(+, _mm256_add_epi32)
  MEMFIT_BINARY(-, _mm256_sub_epi32)
  MEMFIT_BINARY(*, _mm256_mullo_epi32)
  MEMFIT_BINARY(&, _mm256_and_si256)
  MEMFIT_BINARY(|, _mm256_or_si256)
  MEMFIT_BINARY(^, _mm256_xor_si256)
#undef MEMFIT_BINARY
  MEMFIT_AVX2 friend u32 operator<<(u32 const& a, int n) {
    u32 r;
    MEMFIT_STORE(r, shift_left(MEMFIT_LOAD(a), n));
    return r;
  }
  MEMFIT_AVX2 friend u32 operator>>(u32 const& a, int n) {
    u32 r;
    MEMFIT_STORE(r, shift_right(MEMFIT_LOAD(a), n));
    return r;
  }
  MEMFIT_AVX2 friend mask operator>(u32 const& a, u32 const& b) {
    mask r;
    MEMFIT_STORE(r, greater(MEMFIT_LOAD(a), MEMFIT_LOAD(b)));
    return r;
  }
  MEMFIT_AVX2 friend mask operator<(u32 const& a, u32 const& b) {
    return b > a;
  }
  MEMFIT_AVX2 friend mask operator==(u32 const& a, u32 const& b) {
    mask r;
    MEMFIT_STORE(r, _mm256_cmpeq_epi32(MEMFIT_LOAD(a), MEMFIT_LOAD(b)));
    return r;
  }
};

/// Eight 16-bit patterns: what fp16 values are widened from.
struct u16 {
  alignas(16) std::uint16_t v[8];
  u16() = default;
  MEMFIT_AVX2 u16(std::uint32_t x) { store_words(v, _mm_set1_epi16(static_cast<short>(x))); }
  MEMFIT_AVX2 u16(u16 const& o) { store_words(v, load_words(o.v)); }
  MEMFIT_AVX2 u16& operator=(u16 const& o) {
    store_words(v, load_words(o.v));
    return *this;
  }
  MEMFIT_AVX2 friend u16 operator+(u16 const& a, u16 const& b) {
    u16 r;
    store_words(r.v, _mm_add_epi16(load_words(a.v), load_words(b.v)));
    return r;
  }
  MEMFIT_AVX2 friend u16 operator&(u16 const& a, u16 const& b) {
    u16 r;
    store_words(r.v, _mm_and_si128(load_words(a.v), load_words(b.v)));
    return r;
  }
  MEMFIT_AVX2 friend u16 operator<<(u16 const& a, int n) {
    u16 r;
    store_words(r.v, shift_words_left(load_words(a.v), n));
    return r;
  }
};

struct f32 {
  alignas(32) float v[8];
  f32() = default;
  MEMFIT_AVX2 f32(float x) { _mm256_store_ps(v, _mm256_set1_ps(x)); }
  MEMFIT_AVX2 f32(f32 const& o) { _mm256_store_ps(v, _mm256_load_ps(o.v)); }
  MEMFIT_AVX2 f32& operator=(f32 const& o) {
    _mm256_store_ps(v, _mm256_load_ps(o.v));
    return *this;
  }
#define MEMFIT_BINARY(op, intrinsic)                                           \
  MEMFIT_AVX2 friend f32 operator op(f32 const& a, f32 const& b) {             \
    f32 r;                                                                     \
    _mm256_store_ps(r.v, intrinsic(_mm256_load_ps(a.v), _mm256_load_ps(b.v))); \
    return r;                                                                  \
  }
  MEMFIT_BINARY(+, _mm256_add_ps)
  MEMFIT_BINARY(-, _mm256_sub_ps)
  MEMFIT_BINARY(*, multiply)
  MEMFIT_BINARY(/, _mm256_div_ps)
#undef MEMFIT_BINARY
  MEMFIT_AVX2 friend f32 operator-(f32 const& a) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_xor_ps(_mm256_load_ps(a.v), _mm256_set1_ps(-0.0f)));
    return r;
  }
#define MEMFIT_COMPARE(op, predicate)                                              \
  MEMFIT_AVX2 friend mask operator op(f32 const& a, f32 const& b) {                \
    mask r;                                                                        \
    MEMFIT_STORE(r, compare<predicate>(_mm256_load_ps(a.v), _mm256_load_ps(b.v))); \
    return r;                                                                      \
  }
  MEMFIT_COMPARE(<, _CMP_LT_OQ)
  MEMFIT_COMPARE(>, _CMP_GT_OQ)
  MEMFIT_COMPARE(<=, _CMP_LE_OQ)
  MEMFIT_COMPARE(>=, _CMP_GE_OQ)
  MEMFIT_COMPARE(==, _CMP_EQ_OQ)
#undef MEMFIT_COMPARE
};

}  // namespace memfit::avx2

namespace memfit {

namespace avx2 {

/// Runs a body with everything it calls compiled for these units.
template <class Body>
[[MEMFIT_TARGET_AVX2, gnu::flatten, gnu::noinline]] void run(Body const& body);

}  // namespace avx2

template <>
struct ops<avx2::f32> {
  using f32 = avx2::f32;
  using value = f32;
  using uint = avx2::u32;
  using uint16 = avx2::u16;
  using mask = avx2::mask;
  /// Runs a body of code apart from the caller's, so as not to burden it.
  template <class Body>
  static void apart(Body const& body) {
    avx2::run(body);
  }
  static constexpr int width = 8;

  MEMFIT_AVX2 static f32 fma(f32 const& a, f32 const& b, f32 const& c) {
    f32 r;
    _mm256_store_ps(r.v,
                    _mm256_fmadd_ps(_mm256_load_ps(a.v), _mm256_load_ps(b.v), _mm256_load_ps(c.v)));
    return r;
  }
  MEMFIT_AVX2 static f32 product(f32 const& a, f32 const& b) { return a * b; }
  MEMFIT_AVX2 static f32 sqrt(f32 const& a) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_sqrt_ps(_mm256_load_ps(a.v)));
    return r;
  }
  MEMFIT_AVX2 static uint bits(f32 const& a) {
    uint r;
    MEMFIT_STORE(r, _mm256_castps_si256(_mm256_load_ps(a.v)));
    return r;
  }
  MEMFIT_AVX2 static f32 from_bits(uint const& a) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_castsi256_ps(MEMFIT_LOAD(a)));
    return r;
  }
  MEMFIT_AVX2 static f32 to_float(uint const& a) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_cvtepi32_ps(MEMFIT_LOAD(a)));
    return r;
  }
  MEMFIT_AVX2 static uint truncate(f32 const& a) {
    uint r;
    MEMFIT_STORE(r, _mm256_cvttps_epi32(_mm256_load_ps(a.v)));
    return r;
  }
  MEMFIT_AVX2 static f32 select(mask const& m, f32 const& a, f32 const& b) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_blendv_ps(_mm256_load_ps(b.v), _mm256_load_ps(a.v),
                                          _mm256_castsi256_ps(MEMFIT_LOAD(m))));
    return r;
  }
  MEMFIT_AVX2 static uint select(mask const& m, uint const& a, uint const& b) {
    uint r;
    MEMFIT_STORE(r, _mm256_blendv_epi8(MEMFIT_LOAD(b), MEMFIT_LOAD(a), MEMFIT_LOAD(m)));
    return r;
  }
  MEMFIT_AVX2 static uint larger(uint const& a, uint const& b) {
    uint r;
    MEMFIT_STORE(r, _mm256_max_epu32(MEMFIT_LOAD(a), MEMFIT_LOAD(b)));
    return r;
  }
  MEMFIT_AVX2 static uint smaller(uint const& a, uint const& b) {
    uint r;
    MEMFIT_STORE(r, _mm256_min_epu32(MEMFIT_LOAD(a), MEMFIT_LOAD(b)));
    return r;
  }
  MEMFIT_AVX2 static uint merge(uint const& where, uint const& a, uint const& b) {
    return (where & a) | (b & (where ^ 0xffffffffu));
  }
  MEMFIT_AVX2 static uint subtract_where(mask const& m, uint const& a, uint const& b) {
    uint r;
    MEMFIT_STORE(
        r, _mm256_sub_epi32(MEMFIT_LOAD(a), _mm256_and_si256(MEMFIT_LOAD(m), MEMFIT_LOAD(b))));
    return r;
  }
  MEMFIT_AVX2 static mask test(uint const& a, uint const& b) { return !((a & b) == uint(0u)); }
  MEMFIT_AVX2 static f32 greater(f32 const& a, f32 const& b) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_max_ps(_mm256_load_ps(a.v), _mm256_load_ps(b.v)));
    return r;
  }
  MEMFIT_AVX2 static bool any(mask const& m) {
    return _mm256_movemask_ps(_mm256_castsi256_ps(MEMFIT_LOAD(m))) != 0;
  }
  MEMFIT_AVX2 static f32 lookup(float const (&table)[8], uint const& index) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), MEMFIT_LOAD(index)));
    return r;
  }

  MEMFIT_AVX2 static uint lookup(std::uint32_t const (&table)[8], uint const& index) {
    uint r;
    MEMFIT_STORE(r, _mm256_permutevar8x32_epi32(avx2::loadu_int(table), MEMFIT_LOAD(index)));
    return r;
  }
  MEMFIT_AVX2 static f32 lookup(float const (&table)[16], uint const& index) {
    f32 r;
    auto const i = MEMFIT_LOAD(index);
    auto const low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), i);
    auto const high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), i);
    // The sign bit of a lane chooses.
    auto const upper = _mm256_castsi256_ps(avx2::shift_left(i, 28));
    _mm256_store_ps(r.v, _mm256_blendv_ps(low, high, upper));
    return r;
  }

  MEMFIT_AVX2_HOST static std::uint32_t largest(uint const& a) {
    auto const x = MEMFIT_LOAD(a);
    auto z = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    z = _mm_max_epu32(z, _mm_shuffle_epi32(z, 0x4e));
    z = _mm_max_epu32(z, _mm_shuffle_epi32(z, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(z));
  }
  MEMFIT_AVX2_HOST static int count(mask const& m) {
    return __builtin_popcount(
        static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(MEMFIT_LOAD(m)))));
  }
  MEMFIT_AVX2_HOST static uint iota(std::uint32_t first) {
    uint r;
    MEMFIT_STORE(r, _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first)),
                                     _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
    return r;
  }
  MEMFIT_AVX2_HOST static f32 load(float const* p) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_loadu_ps(p));
    return r;
  }
  MEMFIT_AVX2_HOST static avx2::u16 load_patterns(std::uint16_t const* p) {
    avx2::u16 r;
    avx2::store_words(r.v, _mm_loadu_si128(reinterpret_cast<__m128i const*>(p)));
    return r;
  }
  MEMFIT_AVX2_HOST static avx2::u16 load_patterns(std::uint8_t const* p) {
    avx2::u16 r;
    avx2::store_words(r.v, _mm_cvtepu8_epi16(_mm_loadu_si64(p)));
    return r;
  }
  MEMFIT_AVX2_HOST static f32 from_fp16(avx2::u16 const& h) {
    f32 r;
    _mm256_store_ps(r.v, _mm256_cvtph_ps(avx2::load_words(h.v)));
    return r;
  }
  MEMFIT_AVX2_HOST static void store(float* p, f32 const& a) {
    _mm256_storeu_ps(p, _mm256_load_ps(a.v));
  }
  MEMFIT_AVX2_HOST static uint load(std::uint32_t const* p) {
    uint r;
    MEMFIT_STORE(r, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p)));
    return r;
  }
  MEMFIT_AVX2_HOST static uint load(std::uint16_t const* p) {
    uint r;
    MEMFIT_STORE(r, _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))));
    return r;
  }
  MEMFIT_AVX2_HOST static uint load(std::uint8_t const* p) {
    uint r;
    MEMFIT_STORE(r, _mm256_cvtepu8_epi32(_mm_loadu_si64(p)));
    return r;
  }
  /// Half bytes, the low one of each byte first.
  MEMFIT_AVX2_HOST static uint load_halves(std::uint8_t const* p) {
    uint r;
    auto const x = _mm_loadu_si32(p);
    auto const y = _mm_unpacklo_epi8(x, _mm_srli_epi16(x, 4));
    auto const z = _mm256_cvtepu8_epi32(_mm_and_si128(y, _mm_set1_epi8(0xf)));
    MEMFIT_STORE(r, z);
    return r;
  }
  MEMFIT_AVX2_HOST static void store_halves(std::uint8_t* p, uint const& a) {
    auto const x = _mm256_and_si256(MEMFIT_LOAD(a), _mm256_set1_epi32(0xf));
    auto const y = _mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08);
    auto const z = _mm256_castsi256_si128(y);
    auto const pairs = _mm_maddubs_epi16(_mm_packus_epi16(z, z), _mm_set1_epi16(0x1001));
    _mm_storeu_si32(p, _mm_packus_epi16(pairs, pairs));
  }
  MEMFIT_AVX2_HOST static void store(std::uint32_t* p, uint const& a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), MEMFIT_LOAD(a));
  }
  MEMFIT_AVX2_HOST static void store(std::uint16_t* p, uint const& a) {
    auto const x = _mm256_and_si256(MEMFIT_LOAD(a), _mm256_set1_epi32(0xffff));
    auto const y = _mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(y));
  }
  MEMFIT_AVX2_HOST static void store(std::uint8_t* p, uint const& a) {
    auto const x = _mm256_and_si256(MEMFIT_LOAD(a), _mm256_set1_epi32(0xff));
    auto const y = _mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08);
    auto const z = _mm256_castsi256_si128(y);
    _mm_storeu_si64(p, _mm_packus_epi16(z, z));
  }
};

template <>
struct ops<avx2::u32> : ops<avx2::f32> {};

namespace avx2 {

template <class Body>
[[MEMFIT_TARGET_AVX2, gnu::flatten, gnu::noinline]] void run(Body const& body) {
  body.template operator()<f32>();
}

}  // namespace avx2

#undef MEMFIT_LOAD
#undef MEMFIT_STORE

}  // namespace memfit

#undef MEMFIT_AVX2
#undef MEMFIT_AVX2_HOST
#undef MEMFIT_TARGET_AVX2
