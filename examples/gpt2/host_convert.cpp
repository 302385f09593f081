#include "host_convert.hpp"

#include <bit>
#include <cstdint>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace gpt2 {

namespace {

#ifdef __F16C__

constexpr index at_once = 8;

void widen_some(const fp16* in, float* out) {
  _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
}

void narrow_some(const float* in, fp16* out) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT));
}

#else

constexpr index at_once = 1;

void widen_some(const fp16* in, float* out) {
  *out = static_cast<float>(*in);
}

void narrow_some(const float* in, fp16* out) {
  *out = fp16{*in};
}

#endif

}  // namespace

void widen(index count, const bf16* in, float* out) {
#pragma omp simd
  for (index i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

// What bf16's constructor does, in terms that g++ makes vector code of.
void narrow_to(index count, const float* in, bf16* out) {
#pragma omp simd
  for (index i = 0; i < count; ++i) {
    auto const u = std::bit_cast<std::uint32_t>(in[i]);
    std::uint32_t const nearest = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    std::uint32_t const quiet_nan = (u >> 16) | 0x40U;
    out[i].bits = static_cast<std::uint16_t>((u & 0x7fffffffU) > 0x7f800000U ? quiet_nan : nearest);
  }
}

void widen(index count, const fp16* in, float* out) {
  index i = 0;
  for (; i + at_once <= count; i += at_once) widen_some(in + i, out + i);
  for (; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

void narrow_to(index count, const float* in, fp16* out) {
  index i = 0;
  for (; i + at_once <= count; i += at_once) narrow_some(in + i, out + i);
  for (; i < count; ++i) out[i] = fp16{in[i]};
}

}  // namespace gpt2
