// How the kernels of the GPT-2 example divide work over warps and sum over them, always in the same
// order: a warp per row, a lane per element, a block per 32 columns. Used by the CUDA backend.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "cuda_memory.cuh"
#include "element.hpp"

namespace gpt2 {

inline constexpr int lanes = 32;
inline constexpr int warps_per_block = 8;

__device__ inline index lane() {
  return threadIdx.x % lanes;
}

__device__ inline index first_warp() {
  return index{blockIdx.x} * warps_per_block + threadIdx.x / lanes;
}

__device__ inline index all_warps() {
  return index{gridDim.x} * warps_per_block;
}

// In all lanes.
__device__ inline float warp_sum(float x) {
  for (int apart = lanes / 2; apart > 0; apart /= 2) x += __shfl_xor_sync(~0U, x, apart);
  return x;
}

__device__ inline float warp_max(float x) {
  for (int apart = lanes / 2; apart > 0; apart /= 2) x = fmaxf(x, __shfl_xor_sync(~0U, x, apart));
  return x;
}

template <class T>
__device__ void add(T& to, float x) {
  to = T(wide<T>(to) + x);
}

inline index divide_up(index n, index by) {
  return (n + by - 1) / by;
}

// For a kernel whose warps take items from `first_warp()` on, each `all_warps()` apart.
template <class... Parameters, class... Arguments>
void launch_warps(void (*kernel)(Parameters...), index items, const cuda_stream& stream,
                  Arguments... arguments) {
  constexpr index most = 1 << 20;
  auto const blocks = std::min(divide_up(items, warps_per_block), most);
  kernel<<<static_cast<unsigned>(blocks), warps_per_block * lanes, 0, stream.get()>>>(arguments...);
  check(cudaGetLastError());
}

inline constexpr int strips = 16;

template <class T, int Count>
struct column_outputs {
  T* to[Count];
};

// Adds to each output, for each column, the sum over the rows of what `terms(row, column, sums)`
// adds to its sum. Each of a block's warps sums a strip of the rows.
template <class T, int Count, class Terms>
__global__ void add_columns(index rows, index columns, Terms terms,
                            column_outputs<T, Count> outputs) {
  __shared__ float part[Count][strips][lanes];
  index const column = index{blockIdx.x} * lanes + threadIdx.x;
  float sums[Count] = {};
  if (column < columns)
    for (index row = threadIdx.y; row < rows; row += strips) terms(row, column, sums);
  for (int i = 0; i < Count; ++i) part[i][threadIdx.y][threadIdx.x] = sums[i];
  __syncthreads();
  if (column >= columns || threadIdx.y >= Count) return;
  float sum = 0;
  for (int strip = 0; strip < strips; ++strip) sum += part[threadIdx.y][strip][threadIdx.x];
  add(outputs.to[threadIdx.y][column], sum);
}

template <class T, int Count, class Terms>
void launch_columns(index rows, index columns, Terms terms, column_outputs<T, Count> outputs,
                    const cuda_stream& stream) {
  auto const blocks = static_cast<unsigned>(divide_up(columns, lanes));
  add_columns<<<blocks, dim3{lanes, strips}, 0, stream.get()>>>(rows, columns, terms, outputs);
  check(cudaGetLastError());
}

}  // namespace gpt2
