// Quantizing and dequantizing on the device: a warp codes or decodes a unit of whole blocks.
// Used by the CUDA driver for the functions in quantize.hpp.
#pragma once

#include <cstdint>

#include "memfit/exec/cuda/call.cuh"
#include "memfit/exec/cuda/tile.cuh"

namespace memfit::detail {

/// What quantize and dequantize are given.
template <class Values, class Code, class Scale>
struct transform_work {
  Values* values;
  scalar_kind kind;
  std::int64_t n;
  Code* codes;
  Scale* scales;

  __device__ bool is_wide_at(std::int64_t end) const {
    return end <= n && is_wide(codes, sizeof(Code)) &&
           is_wide(values, static_cast<int>(bytes_of(kind)));
  }
};

/// Codes units of blocks, as quantize_body does on the host.
template <class C, range R, int Block>
struct warp_quantize {
  using F = warp::f32;
  using work = transform_work<void const, typename C::code, float>;
  static constexpr int unit = unit_of<Block>;
  static constexpr int groups = layout<Block>::groups;
  work const& w;

  __device__ void operator()(std::int64_t first) const {
    if (w.is_wide_at(first + unit) && ordinary(first)) return;
    for (auto begin = first; begin < w.n && begin < first + unit; begin += Block) careful(begin);
  }

 private:
  __device__ bool ordinary(std::int64_t first) const {
    F x[runs][wide];
    float most[groups] = {};
    for (int at = 0; at < unit; at += tile) load(first + at, x, most);
    bool odd = false;
    if constexpr (C::scaled)
      for (auto& m : most) {
        auto const largest = largest_of<layout<Block>::sharing>(bits(m));
        odd |= !ordinary_scale(largest);
        m = from_bits<float>(largest);
      }
    if (__any_sync(warp::everyone, odd)) return false;
    for (int at = 0; at < unit; at += tile) {
      if constexpr (unit > tile) load(first + at, x, most);
      four<typename C::code> c[runs];
      code_tile<C, R, rounding::nearest_nearly, rounding::nearest>(
          x, most, false, [](int, int) { return false; }, c);
      for (int r = 0; r < runs; ++r) c[r].store(w.codes + place(first + at, r));
    }
    if constexpr (C::scaled)
      if (warp::lane() % layout<Block>::sharing == 0)
        for (int g = 0; g < groups; ++g) w.scales[block_of<Block>(place(first, g))] = most[g];
    return true;
  }

  __device__ void load(std::int64_t first, F (&x)[runs][wide], float (&most)[groups]) const {
#pragma unroll
    for (int r = 0; r < runs; ++r) {
      with_codec_of(w.kind, [&]<class In> { load_four<In>(w.values, place(first, r), x[r]); });
      for (auto& v : x[r]) {
        v = representable<R>(v);
        most[r % groups] = warp::greater_magnitude(most[r % groups], v.v);
      }
    }
  }

  /// Any case: a block in part, values that are not finite, extreme scales, unaligned memory.
  __device__ void careful(std::int64_t begin) const {
    auto const end = begin + Block < w.n ? begin + Block : w.n;
    std::uint32_t most = 0;
    for (auto i = begin + warp::lane(); i < end; i += warp::lanes) {
      auto const m = magnitude(value(i));
      if (m < infinity_bits) most = ops<float>::larger(most, m);
    }
    most = C::scaled ? largest_of<warp::lanes>(most) : 0u;
    normalizer<F, true> const normalize(from_bits<float>(most));
    for (auto at = begin; at < end; at += warp::lanes) {
      auto const i = at + warp::lane();
      code_masks<F> masks;
      auto const c = coded<C, R, rounding::nearest>(
          i < end ? settled(value(i), from_bits<float>(most)) : F(0.0f), normalize, masks);
      if (i < end) w.codes[i] = static_cast<typename C::code>(c.v);
    }
    if constexpr (C::scaled)
      if (warp::lane() == 0) w.scales[block_of<Block>(begin)] = from_bits<float>(most);
  }

  __device__ F value(std::int64_t i) const {
    return representable<R>(load_one(w.values, w.kind, i));
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
template <class C, range R, int Block>
struct warp_dequantize {
  using F = warp::f32;
  using work = transform_work<void, typename C::code const, float const>;
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
        F const x = decoded<C>(inside ? w.codes[i] : C::zero);
        if (inside) store_one(i, scaled(x, i));
      }
    }
  }

 private:
  __device__ F scaled(F x, std::int64_t i) const {
    if constexpr (C::scaled)
      return product(x, F(w.scales[block_of<Block>(i)]));
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
