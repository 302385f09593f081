// A tile of elements in the registers of a warp, and how its values become codes.
// Used by the CUDA driver's kernels for steps and for quantization.
#pragma once

#include <cstdint>

#include "memfit/exec/block.hpp"
#include "memfit/exec/cuda/wide.cuh"

namespace memfit::detail {

/// A tile is this many runs of consecutive elements in each thread.
inline constexpr int runs = 2;
inline constexpr int tile = warp::lanes * wide * runs;

/// Elements that a warp finishes together: whole blocks and whole tiles.
template <int Block>
inline constexpr int unit_of = Block > tile ? Block : tile;

/// Where this thread's run of the tile that begins at `first` begins.
__device__ inline std::int64_t place(std::int64_t first, int run) {
  return first + warp::lane() * wide + run * (tile / runs);
}

/// The block that an element lies in.
template <int Block>
__device__ std::int64_t block_of(std::int64_t i) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(i) / Block);
}

/// How threads share blocks: a block is whole tiles, or both runs of a tile, or a part of one run.
template <int Block>
struct layout {
  static constexpr int run = tile / runs;
  static constexpr int groups = Block < tile ? runs : 1;  ///< blocks that a thread's runs lie in
  static constexpr int sharing = Block < run ? Block / wide : warp::lanes;  ///< threads of a block
};

/// Values under the maxima of their blocks as codes: quickly by `Nearly`, and where that leaves one
/// unsure, or `fades` holds, by `Exact`, whose fading(run, j) tells what has faded. The exact way
/// takes one value after the other, so that its code is there once.
template <class C, range R, rounding Nearly, rounding Exact, int Groups, class Fading>
__device__ void code_tile(warp::f32 const (&x)[runs][wide], float const (&most)[Groups], bool fades,
                          Fading const& fading, four<typename C::code> (&to)[runs]) {
  using F = warp::f32;
  warp::u32 c[runs][wide];
  code_masks<F> masks;
#pragma unroll
  for (int r = 0; r < runs; ++r) {
    normalizer<F, false> const normalize(most[r % Groups]);
#pragma unroll
    for (int j = 0; j < wide; ++j) c[r][j] = coded<C, R, Nearly>(x[r][j], normalize, masks);
  }
  constexpr bool nearly = Nearly != Exact && requires(doubt_of<F> & m) {
    C::encode_nearly(x[0][0], m);
  };
  if (fades || (nearly && ops<F>::any(masks.unsure))) {
#pragma unroll 1
    for (int n = 0; n < runs * wide; ++n) {
      F one = x[0][0];
      auto const pick = [&](auto const& body) {
#pragma unroll
        for (int r = 0; r < runs; ++r)
#pragma unroll
          for (int j = 0; j < wide; ++j)
            if (n == r * wide + j) body(r, j);
      };
      pick([&](int r, int j) { one = x[r][j]; });
      normalizer<F, false> const normalize(n < wide ? most[0] : most[(runs - 1) % Groups]);
      masks.fading = fading(n / wide, n % wide);
      auto const code = coded<C, R, Exact>(one, normalize, masks);
      pick([&](int r, int j) { c[r][j] = code; });
    }
  }
#pragma unroll
  for (int r = 0; r < runs; ++r) to[r] = four<typename C::code>::pack(c[r]);
}

}  // namespace memfit::detail
