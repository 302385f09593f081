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

/// What a tile's values take along when they become codes: whether any fades, which of them do, and
/// 32 random bits for each; here nothing.
struct plain_company {
  static constexpr bool fades = false;
  __device__ static bool fading(int /* run */, int /* j */) { return false; }
  __device__ static warp::u32 noise(int /* run */, int /* j */) { return 0u; }
};

/// Values under the maxima of their blocks as codes: quickly by `Nearly`, and where that leaves one
/// unsure, or something fades, by `Exact`. The exact way takes one value after the other, so that
/// its code is there once. Values that are rounded at random need no such second look.
template <class Storage, rounding Nearly, rounding Exact, class Company>
__device__ void code_tile(warp::f32 const (&x)[runs][wide], float const (&most)[runs],
                          Company const& company, four_of<typename Storage::codec> (&to)[runs]) {
  using F = warp::f32;
  constexpr int groups = layout<Storage::block>::groups;
  constexpr bool random = takes_noise<Storage, Nearly>;
  warp::u32 c[runs][wide];
  code_masks<F> masks;
#pragma unroll
  for (int r = 0; r < runs; ++r) {
    normalizer<F, false> const normalize(most[r % groups]);
#pragma unroll
    for (int j = 0; j < wide; ++j) {
      if constexpr (random) masks.noise = company.noise(r, j);
      c[r][j] = coded<Storage, Nearly>(x[r][j], normalize, masks);
    }
  }
  if (!random &&
      (company.fades || (decides_nearly<typename Storage::codec> && ops<F>::any(masks.unsure)))) {
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
      normalizer<F, false> const normalize(n < wide ? most[0] : most[(runs - 1) % groups]);
      masks.fading = company.fading(n / wide, n % wide);
      auto const code = coded<Storage, Exact>(one, normalize, masks);
      pick([&](int r, int j) { c[r][j] = code; });
    }
  }
#pragma unroll
  for (int r = 0; r < runs; ++r) to[r] = four_of<typename Storage::codec>::pack(c[r]);
}

/// A number for each of a few things, each in the registers of one thread: element i is thread i's.
template <int Count>
class warp_array {
  static constexpr int rows = (Count + warp::lanes - 1) / warp::lanes;

 public:
  /// Calls change(x) with element i, where it is.
  template <class Change>
  __device__ void at(int i, Change const& change) {
    for (int r = 0; r < rows; ++r)
      if (warp::lane() + r * warp::lanes == i) change(x_[r]);
  }
  /// Element i, for all threads together.
  __device__ std::uint32_t operator[](int i) const {
    std::uint32_t x = x_[0];
    for (int r = 1; r < rows; ++r)
      if (i / warp::lanes == r) x = x_[r];
    return __shfl_sync(warp::everyone, x, i % warp::lanes);
  }
  /// Calls use(i, x) with the elements of this thread, x to be changed.
  template <class Use>
  __device__ void for_own(Use const& use) {
    for (int r = 0; r < rows; ++r)
      if (auto const i = warp::lane() + r * warp::lanes; i < Count) use(i, x_[r]);
  }

 private:
  std::uint32_t x_[rows] = {};
};

}  // namespace memfit::detail
