// Quantizing and dequantizing on the device: a warp codes or decodes a unit of whole blocks.
// Used by the CUDA driver for the functions in quantize.hpp.
#pragma once

#include <cstdint>

#include "memfit/exec/cuda/call.cuh"
#include "memfit/exec/cuda/tile.cuh"

namespace memfit::detail {

/// What quantize and dequantize are given.
template <class C, class Values, class Codes>
struct transform_work {
  Values* values;
  scalar_kind kind;
  std::int64_t n;
  Codes* codes;
  Codes* scales;

  __device__ bool is_wide_at(std::int64_t end) const {
    return end <= n && is_wide<C>(codes) && is_wide(values, static_cast<int>(bytes_of(kind)));
  }
};

/// Codes units of blocks, as quantize_body does on the host.
template <class Storage>
struct warp_quantize {
  using F = warp::f32;
  using C = typename Storage::codec;
  using work = transform_work<C, void const, void>;
  static constexpr int block = Storage::block;
  static constexpr int unit = unit_of<block>;
  static constexpr int groups = layout<block>::groups;
  work const& w;

  __device__ void operator()(std::int64_t first) const {
    if (w.is_wide_at(first + unit) && ordinary(first)) return;
    for (auto begin = first; begin < w.n && begin < first + unit; begin += block) careful(begin);
  }

 private:
  __device__ bool ordinary(std::int64_t first) const {
    F x[runs][wide];
    float most[runs] = {};
    for (int at = 0; at < unit; at += tile) load(first + at, x, most);
    bool odd = false;
    if constexpr (C::scaled)
      for (int g = 0; g < groups; ++g) {
        auto const scale = Storage::scale_for(largest_of<layout<block>::sharing>(bits(most[g])));
        odd |= !ordinary_scale(scale);
        most[g] = from_bits<float>(scale);
      }
    if (__any_sync(warp::everyone, odd)) return false;
    for (int at = 0; at < unit; at += tile) {
      if constexpr (unit > tile) load(first + at, x, most);
      four_of<C> c[runs];
      code_tile<Storage, rounding::nearest_nearly, rounding::nearest>(x, most, plain_company{}, c);
      for (int r = 0; r < runs; ++r) c[r].store(Storage::at(w.codes, place(first + at, r)));
    }
    if (warp::lane() % layout<block>::sharing == 0)
      for (int g = 0; g < groups; ++g)
        Storage::store_scale(w.scales, block_of<block>(place(first, g)), bits(most[g]));
    return true;
  }

  __device__ void load(std::int64_t first, F (&x)[runs][wide], float (&most)[runs]) const {
#pragma unroll
    for (int r = 0; r < runs; ++r) {
      with_codec_of(w.kind, [&]<class In> { load_four<In>(w.values, place(first, r), x[r]); });
      for (auto& v : x[r]) {
        v = representable<Storage::values>(v);
        most[r % groups] = warp::greater_magnitude(most[r % groups], v.v);
      }
    }
  }

  /// Any case: a block in part, values that are not finite, extreme scales, unaligned memory.
  __device__ void careful(std::int64_t begin) const {
    auto const end = begin + block < w.n ? begin + block : w.n;
    std::uint32_t most = 0;
    for (auto i = begin + warp::lane(); i < end; i += warp::lanes) {
      auto const m = magnitude(value(i));
      if (m < infinity_bits) most = ops<float>::larger(most, m);
    }
    most = C::scaled ? largest_of<warp::lanes>(most) : 0u;
    auto const scale = Storage::scale_for(most);
    normalizer<F, true> const normalize(from_bits<float>(scale));
    for (auto at = begin; at < end; at += warp::lanes) {
      auto const i = at + warp::lane();
      code_masks<F> masks;
      auto const c = coded<Storage, rounding::nearest>(
          i < end ? settled(value(i), from_bits<float>(most)) : F(0.0f), normalize, masks);
      store_each<C>(static_cast<typename C::code*>(w.codes), i, c, i < end);
    }
    if (warp::lane() == 0) Storage::store_scale(w.scales, block_of<block>(begin), scale);
  }

  __device__ F value(std::int64_t i) const {
    return representable<Storage::values>(load_one(w.values, w.kind, i));
  }
  /// In a block with a scale a NaN counts as 0, an infinity as the largest finite magnitude.
  __device__ static F settled(F x, float most) {
    if (!C::scaled || magnitude(x) < infinity_bits) return x;
    if (magnitude(x) > infinity_bits) return 0.0f;
    return x < F(0.0f) ? -most : most;
  }
  __device__ static std::uint32_t magnitude(F x) {
    return bits(x).v & 0x7fffffffu;
  }
};

/// Decodes tiles of elements.
template <class Storage>
struct warp_dequantize {
  using F = warp::f32;
  using C = typename Storage::codec;
  using work = transform_work<C, void, void const>;
  static constexpr int unit = tile;
  work const& w;

  __device__ void operator()(std::int64_t first) const {
    if (w.is_wide_at(first + tile)) {
      for (int r = 0; r < runs; ++r) {
        auto const i = place(first, r);
        F x[wide];
        load_four<C>(w.codes, i, x);
        for (auto& v : x) v = scaled(v, i);
        store_four(i, x);
      }
    } else {
      for (auto at = first; at < w.n && at < first + tile; at += warp::lanes) {
        auto const i = at + warp::lane();
        bool const inside = i < w.n;
        F const x = decoded<C>(
            inside ? load_code<C>(static_cast<typename C::code const*>(w.codes), i) : C::zero);
        if (inside) store_one(i, scaled(x, i));
      }
    }
  }

 private:
  __device__ F scaled(F x, std::int64_t i) const {
    if constexpr (C::scaled)
      return product(x, F(Storage::load_scale(w.scales, block_of<Storage::block>(i))));
    else
      return x;
  }
  __device__ void store_four(std::int64_t i, F const (&x)[wide]) const {
    with_codec_of(w.kind, [&]<class Out> { store_four_as<Out>(i, x); });
  }
  template <class Out>
  __device__ void store_four_as(std::int64_t i, F const (&x)[wide]) const {
    using code = typename Out::code;
    warp::u32 const c[wide] = {Out::encode(x[0]), Out::encode(x[1]), Out::encode(x[2]),
                               Out::encode(x[3])};
    four<code>::pack(c).store(static_cast<code*>(w.values) + i);
  }
  __device__ void store_one(std::int64_t i, F x) const {
    with_codec_of(w.kind, [&]<class Out> {
      using code = typename Out::code;
      static_cast<code*>(w.values)[i] = static_cast<code>(Out::encode(x).v);
    });
  }
};

template <class Body>
__global__ void __launch_bounds__(threads_per_block) transform_units(typename Body::work work) {
  auto const stride = std::int64_t{gridDim.x} * warps_per_block * Body::unit;
  auto first =
      (std::int64_t{blockIdx.x} * warps_per_block + threadIdx.x / warp::lanes) * Body::unit;
  is_global(work.values);
  is_global(work.codes);
  for (; first < work.n; first += stride) Body{work}(first);
}

template <class Body>
void launch_transform(cuda const& exec, typename Body::work const& work) {
  launch(exec, transform_units<Body>, grid_for(work.n, warps_per_block * Body::unit), work);
}

}  // namespace memfit::detail
