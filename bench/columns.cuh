// Columns of made-up values in device memory: gradients, parameters, and moments of zero.
// Used by the CUDA benchmark programs.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/memfit.cuh"

namespace memfit::bench {

/// A reproducible number from [-0.5, 0.5) for every element.
__device__ inline float number(std::int64_t i) {
  auto const bits = noise(noise_key{1, 2}, static_cast<std::uint32_t>(i));
  return static_cast<float>(bits >> 8) * 0x1p-24f - 0.5f;
}
template <class = void>
__global__ void write_gradients(float* gradient, std::int64_t n) {
  auto const i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) gradient[i] = 0.01f * number(i) * number(i) * number(i);
}
template <class Column>
__global__ void write_parameters(typename Column::code* visible, typename Column::kept* kept,
                                 std::int64_t n) {
  auto const i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  auto const code = Column::encode(number(i), 0u);
  visible[i] = static_cast<typename Column::code>(code.visible);
  if constexpr (!std::is_void_v<typename Column::kept>)
    kept[i] = static_cast<typename Column::kept>(code.kept);
}

inline unsigned blocks_for(std::int64_t n, int threads) {
  return static_cast<unsigned>((n + threads - 1) / threads);
}

struct gradients {
  buffer data;
  gradients(cuda const& exec, std::int64_t n) : data(exec.allocate(4 * n)) {
    write_gradients<><<<blocks_for(n, 256), 256, 0, exec.stream()>>>(get(), n);
  }
  float* get() const { return static_cast<float*>(data.data()); }
};

template <class Column>
struct parameters {
  using code = typename Column::code;
  using kept_code = typename Column::kept;
  buffer visible, kept;
  parameters(cuda const& exec, std::int64_t n)
      : visible(exec.allocate(n * std::int64_t{sizeof(code)})) {
    if constexpr (!std::is_void_v<kept_code>)
      kept = exec.allocate(n * std::int64_t{sizeof(kept_code)});
    write_parameters<Column><<<blocks_for(n, 256), 256, 0, exec.stream()>>>(
        get(), static_cast<kept_code*>(kept.data()), n);
  }
  code* get() const { return static_cast<code*>(visible.data()); }
};

/// Codes of value zero and their scales.
template <class Format, range R>
struct coded {
  using stored = storage<Format, R>;
  using code = typename stored::code;
  using scale = typename stored::scale;
  buffer codes, scales;
  coded(cuda const& exec, std::int64_t n)
      : codes(exec.allocate(stored::code_bytes(n))), scales(exec.allocate(stored::scale_bytes(n))) {
    exec.fill(codes.data(), stored::zero_byte, codes.bytes());
    exec.fill(scales.data(), 0, scales.bytes());
  }
  moment_ref ref() const { return {codes.data(), scales.data()}; }
};

}  // namespace memfit::bench
