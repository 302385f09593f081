// Quantizing and dequantizing runs of blocks on the host.
// Used by host for the functions in quantize.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "memfit/exec/host/block.hpp"

namespace memfit::detail {

/// Codes blocks first … last of n elements. A NaN counts as 0 and an infinity as the largest finite
/// magnitude of its block.
template <class Storage>
struct quantize_body {
  using C = typename Storage::codec;
  static constexpr int Block = Storage::block;
  void const* in;
  scalar_kind kind;
  std::int64_t n, first, last;
  void* codes;
  void* scales;

  template <class F>
  void operator()() const {
    for (auto b = first; b < last; ++b) one_block<F>(b);
  }

 private:
  template <class F>
  void one_block(std::int64_t b) const {
    alignas(64) float x[Block];
    auto const begin = b * Block;
    auto const count = (std::min<std::int64_t>)(Block, n - begin);
    if (count == Block) {
      auto const most = stage<F>(begin, x);
      if (ordinary_scale(Storage::scale_for(most)))
        return write<F, false>(x, b, most, Storage::at(codes, begin));
    }
    std::fill(x, x + Block, 0.0f);
    for (int i = 0; i < count; ++i)
      x[i] = representable<Storage::values>(load_scalars<float>(in, kind, begin + i));
    if constexpr (C::scaled) make_finite(x);
    typename C::code padded[Block] = {};
    write<F, true>(x, b, C::scaled ? largest_magnitude<F>(x, Block) : 0u, padded);
    std::memcpy(Storage::at(codes, begin), padded,
                static_cast<std::size_t>(Storage::code_bytes(count)));
  }

  /// A block's values in scratch; returns the pattern of their largest magnitude, 0 without scales.
  template <class F>
  std::uint32_t stage(std::int64_t begin, float* x) const {
    constexpr int ahead = 1024;
    auto const size = bytes_of(kind);
    uint_of<F> most(0u);
    for (int i = 0; i < Block; i += ops<F>::width) {
      for (int line = i; line < i + ops<F>::width; line += 16)
        __builtin_prefetch(static_cast<char const*>(in) + (begin + line + ahead) * size);
      F const v = representable<Storage::values>(load_scalars<F>(in, kind, begin + i));
      if constexpr (C::scaled) most = larger(most, bits(v) & 0x7fffffffu);
      ops<F>::store(x + i, v);
    }
    return ops<F>::largest(most);
  }

  static void make_finite(float (&x)[Block]) {
    float most = 0.0f;
    for (float v : x)
      if (bits(abs(v)) < infinity_bits) most = (std::max)(most, abs(v));
    for (float& v : x) {
      auto const magnitude = bits(v) & 0x7fffffffu;
      if (magnitude > infinity_bits) v = 0.0f;
      if (magnitude == infinity_bits) v = v < 0.0f ? -most : most;
    }
  }

  template <class F, bool Any>
  void write(float const* x, std::int64_t b, std::uint32_t most, typename C::code* to) const {
    auto const pattern = Storage::scale_for(most);
    float const scale = from_bits<float>(pattern);
    Storage::store_scale(scales, b, pattern);
    normalizer<F, Any> const normalize(scale);
    code_masks<F> masks;
    for (int i = 0; i < Block; i += ops<F>::width)
      store_codes<F, Storage, Any, rounding::nearest_nearly>(ops<F>::load(x + i), normalize, masks,
                                                             to, i);
    if (any<F>(masks.unsure)) ops<F>::apart(exact_codes<Any>{x, scale, to});
  }

  /// Codes of a block, all decided exactly.
  template <bool Any>
  struct exact_codes {
    float const* x;
    float scale;
    typename C::code* to;
    template <class F>
    void operator()() const {
      normalizer<F, Any> const normalize(scale);
      code_masks<F> masks;
      for (int i = 0; i < Block; i += ops<F>::width)
        store_codes<F, Storage, Any, rounding::nearest>(ops<F>::load(x + i), normalize, masks, to,
                                                        i);
    }
  };
};

/// Decodes blocks first … last of n elements.
template <class Storage>
struct dequantize_body {
  typename Storage::code const* codes;
  void const* scales;
  std::int64_t n, first, last;
  void* out;
  scalar_kind kind;

  template <class F>
  void operator()() const {
    for (auto b = first; b < last; ++b) {
      auto const begin = b * Storage::block;
      auto const end = (std::min<std::int64_t>)(begin + Storage::block, n);
      float const scale = Storage::load_scale(scales, b);
      auto i = begin;
      for (; i + ops<F>::width <= end; i += ops<F>::width) one<F>(i, scale);
      for (; i < end; ++i) one<float>(i, scale);
    }
  }

 private:
  template <class F>
  void one(std::int64_t i, float scale) const {
    F const x = load_moment<Storage, false, F>(codes, i, F(scale));
    if (kind == scalar_kind::fp32) return ops<F>::store(static_cast<float*>(out) + i, x);
    ops<F>::store(static_cast<std::uint16_t*>(out) + i,
                  kind == scalar_kind::bf16 ? bf16_codec::encode(x) : fp16_codec::encode(x));
  }
};

}  // namespace memfit::detail
