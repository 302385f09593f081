// Four consecutive elements of a column at a time: one load, one store, for codes of any width.
// Used by the CUDA driver's kernels on full, aligned tiles.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/float.hpp"
#include "memfit/exec/concept.hpp"
#include "memfit/exec/cuda/lane.cuh"

namespace memfit::detail {

/// Tells the compiler that a pointer leads to global memory, whichever way it came here.
__device__ inline void is_global(void const* p) {
  __builtin_assume(__isGlobal(p));
}

/// Elements that one thread reads or writes at once.
inline constexpr int wide = 4;

template <int Bits>
struct wide_word;
template <>
struct wide_word<4> {
  using type = std::uint16_t;
};
template <>
struct wide_word<8> {
  using type = std::uint32_t;
};
template <>
struct wide_word<16> {
  using type = uint2;
};
template <>
struct wide_word<32> {
  using type = float4;  // most are bound for float registers
};

/// Four codes of one thread, each of so many bits.
template <class Code, int Width = 8 * static_cast<int>(sizeof(Code))>
struct four {
  typename wide_word<Width>::type word;

  __device__ static four load(Code const* p) {
    return {*reinterpret_cast<decltype(word) const*>(p)};
  }
  __device__ void store(Code* p) const {
    auto* const to = reinterpret_cast<decltype(word)*>(p);
    if constexpr (Width <= 8)
      *to = word;
    else
      __stwb(to, word);  // of a plain store of a vector the compiler may make four
  }

  /// Code i, with zeros above it.
  __device__ warp::u32 operator[](int i) const {
    if constexpr (Width == 4) {
      return (std::uint32_t{word} >> 4 * i) & 0xfu;
    } else if constexpr (Width == 8) {
      return i == 0   ? warp::bytes<0x4440>(word)
             : i == 1 ? warp::bytes<0x4441>(word)
             : i == 2 ? warp::bytes<0x4442>(word)
                      : warp::bytes<0x4443>(word);
    } else if constexpr (Width == 16) {
      auto const pair = i < 2 ? word.x : word.y;
      return i % 2 == 0 ? pair & 0xffffu : pair >> 16;
    } else {
      return ops<float>::bits(i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w);
    }
  }

  /// Codes 2 i and 2 i + 1, each with zeros above it.
  __device__ warp::u16x2 pair(int i) const {
    if constexpr (Width == 8)
      return warp::u16x2::of(i == 0 ? warp::bytes<0x4140>(word) : warp::bytes<0x4342>(word));
    else
      return warp::u16x2::of(i == 0 ? word.x : word.y);
  }

  /// From patterns that may have anything above the code.
  __device__ static four pack(warp::u32 const (&c)[wide]) {
    if constexpr (Width == 4) {
      auto const low = merge(0xfu, c[0], c[1] << 4), high = merge(0xfu, c[2], c[3] << 4);
      return {static_cast<std::uint16_t>(merge(0xffu, low, high << 8).v)};
    } else if constexpr (Width == 8) {
      return {warp::bytes<0x5410>(warp::bytes<0x0040>(c[0].v, c[1].v),
                                  warp::bytes<0x0040>(c[2].v, c[3].v))};
    } else if constexpr (Width == 16) {
      return {{warp::bytes<0x5410>(c[0].v, c[1].v), warp::bytes<0x5410>(c[2].v, c[3].v)}};
    } else {
      return {{from_bits<float>(c[0].v), from_bits<float>(c[1].v), from_bits<float>(c[2].v),
               from_bits<float>(c[3].v)}};
    }
  }
};

/// Four codes of a codec, and where element i's lies, which is even where two share a byte.
template <class C>
using four_of = four<typename C::code, code_width<C>()>;
template <class C>
__device__ typename C::code const* code_at(void const* codes, std::int64_t i) {
  return static_cast<typename C::code const*>(codes) + (code_width<C>() == 4 ? i / 2 : i);
}

template <class C>
concept widens_from_fp16 = requires(warp::u16x2 c) {
  C::fp16_pattern(c);
};

/// The value of a code before any scale.
template <class C>
__device__ warp::f32 decoded(warp::u32 c) {
  if constexpr (widens_from_fp16<C>) {
    warp::f32 x, other;
    ops<warp::f32>::from_fp16(C::fp16_pattern(warp::u16x2::of(c.v)), x, other);
    return x;
  } else {
    return C::decode(c);
  }
}

template <class C>
__device__ void load_four(void const* data, std::int64_t i, warp::f32 (&x)[wide]) {
  auto const codes = four_of<C>::load(code_at<C>(data, i));
  if constexpr (widens_from_fp16<C>)
    for (int j = 0; j < wide; j += 2)
      ops<warp::f32>::from_fp16(C::fp16_pattern(codes.pair(j / 2)), x[j], x[j + 1]);
  else
    for (int j = 0; j < wide; ++j) x[j] = C::decode(codes[j]);
}

/// Calls use<codec>() with the codec of an element kind.
template <class Use>
__device__ void with_codec_of(scalar_kind kind, Use const& use) {
  if (kind == scalar_kind::fp32)
    use.template operator()<fp32_codec>();
  else if (kind == scalar_kind::bf16)
    use.template operator()<bf16_codec>();
  else
    use.template operator()<fp16_codec>();
}

/// Element i of a tensor of the given kind.
__device__ inline warp::f32 load_one(void const* data, scalar_kind kind, std::int64_t i) {
  if (kind == scalar_kind::fp32) return static_cast<float const*>(data)[i];
  warp::u32 const c{static_cast<std::uint16_t const*>(data)[i]};
  return kind == scalar_kind::bf16 ? decoded<bf16_codec>(c) : decoded<fp16_codec>(c);
}

/// Whether four elements of this size may be read at once from here and from every fourth on.
__device__ inline bool is_wide(void const* data, int size) {
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<unsigned>(wide * size) == 0;
}
template <class C>
__device__ bool is_wide(void const* codes) {
  constexpr unsigned size = wide * code_width<C>() / 8;
  return reinterpret_cast<std::uintptr_t>(codes) % size == 0;
}

/// Stores the codes of consecutive elements, element i for this thread where it is `inside`: all
/// threads of the warp together, the first of them at an even element.
template <class C>
__device__ void store_each(typename C::code* codes, std::int64_t i, warp::u32 code, bool inside) {
  using type = typename C::code;
  if constexpr (code_width<C>() == 4) {
    auto const next = __shfl_down_sync(warp::everyone, code.v, 1);
    if (inside && i % 2 == 0) codes[i / 2] = static_cast<type>((code.v & 0xfu) | next << 4);
  } else {
    if (inside) codes[i] = static_cast<type>(code.v);
  }
}

template <int Lanes>
__device__ std::uint32_t largest_by_shuffles(std::uint32_t x) {
  for (int reach = 1; reach < Lanes; reach *= 2)
    x = ops<float>::larger(x, __shfl_xor_sync(warp::everyone, x, reach));
  return x;
}

/// The largest pattern among `Lanes` neighbouring threads, for all of them.
template <int Lanes>
__device__ std::uint32_t largest_of(std::uint32_t x) {
#if __CUDA_ARCH__ >= 800
  if constexpr (Lanes == warp::lanes)
    return __reduce_max_sync(warp::everyone, x);
  else
    return largest_by_shuffles<Lanes>(x);
#else
  return largest_by_shuffles<Lanes>(x);
#endif
}

}  // namespace memfit::detail
