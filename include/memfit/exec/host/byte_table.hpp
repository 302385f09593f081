// The values of a one-byte codec as a table, for machines that look 64 bytes up at a time.
// Used by the step for codecs that ask for it, on processors with AVX-512 VBMI.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/concept.hpp"
#include "memfit/core/lanes.hpp"

#if defined(__x86_64__)
#include "memfit/exec/host/lanes_avx512.hpp"
#endif

namespace memfit::detail {

/// Byte k of the pattern of each code's value, for k = 0 … 3.
struct byte_planes {
  alignas(64) std::uint8_t of[4][byte_codes];
};

template <class C>
byte_planes make_byte_planes() {
  byte_planes planes;
  for (std::uint32_t c = 0; c < byte_codes; ++c) {
    std::uint32_t const u = bits(C::decode(c));
    for (int k = 0; k < 4; ++k) planes.of[k][c] = static_cast<std::uint8_t>(u >> (8 * k));
  }
  return planes;
}

template <class C>
byte_planes const& byte_planes_of() {
  static byte_planes const planes = make_byte_planes<C>();
  return planes;
}

#if defined(__x86_64__)

inline bool machine_permutes_bytes() {
  static bool const has = __builtin_cpu_supports("avx512vbmi");
  return has;
}

/// Writes the values of n codes, a multiple of 64.
[[gnu::target("avx512f,avx512bw,avx512vbmi"), gnu::noinline]] inline void look_up_values(
    byte_planes const& planes, std::uint8_t const* codes, int n, float* to) {
  // Puts dword 4 q + r at 4 r + q, so that the interleaving below, which works within quarters,
  // leaves values in order.
  auto const order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (int i = 0; i < n; i += 64) {
    auto const c = _mm512_maskz_permutexvar_epi32(0xffff, order, _mm512_loadu_si512(codes + i));
    auto const upper = _mm512_movepi8_mask(c);
    auto const odd = _mm512_test_epi8_mask(c, _mm512_set1_epi8(0x40));
    __m512i byte[4];
    for (int k = 0; k < 4; ++k) {
      auto const* const t = planes.of[k];
      auto b = _mm512_maskz_permutexvar_epi8(~0ull, c, _mm512_load_si512(t));
      b = _mm512_mask_permutexvar_epi8(b, odd & ~upper, c, _mm512_load_si512(t + 64));
      b = _mm512_mask_permutexvar_epi8(b, upper & ~odd, c, _mm512_load_si512(t + 128));
      byte[k] = _mm512_mask_permutexvar_epi8(b, upper & odd, c, _mm512_load_si512(t + 192));
    }
    auto const low0 = _mm512_unpacklo_epi8(byte[0], byte[1]);
    auto const low1 = _mm512_unpackhi_epi8(byte[0], byte[1]);
    auto const high0 = _mm512_unpacklo_epi8(byte[2], byte[3]);
    auto const high1 = _mm512_unpackhi_epi8(byte[2], byte[3]);
    _mm512_storeu_si512(to + i, _mm512_unpacklo_epi16(low0, high0));
    _mm512_storeu_si512(to + i + 16, _mm512_unpackhi_epi16(low0, high0));
    _mm512_storeu_si512(to + i + 32, _mm512_unpacklo_epi16(low1, high1));
    _mm512_storeu_si512(to + i + 48, _mm512_unpackhi_epi16(low1, high1));
  }
}

/// Values of n codes, by the table where the machine has what it takes.
template <class F, class C>
inline void stage_values(typename C::code const* codes, int n, float* to) {
  if (machine_permutes_bytes()) return look_up_values(byte_planes_of<C>(), codes, n, to);
  for (int i = 0; i < n; i += ops<F>::width)
    ops<F>::store(to + i, C::decode(ops<F>::load(codes + i)));
}

/// Whether lanes of this kind read codes of C from a table.
template <class F, class C>
inline constexpr bool reads_table = std::is_same_v<F, paired::f32<avx512::f32>>&& requires {
  requires C::tabulated;
};

#else

template <class F, class C>
inline constexpr bool reads_table = false;

#endif

}  // namespace memfit::detail
