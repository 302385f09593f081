// The CUDA driver: one pass over memory per step, for every rule, state format and parameter
// column. Used in files compiled by nvcc that make optimizers, steps or quantizers on memfit::cuda.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "memfit/exec/cuda.hpp"
#include "memfit/exec/cuda/call.cuh"
#include "memfit/exec/cuda/list.cuh"
#include "memfit/exec/cuda/norm.cuh"
#include "memfit/exec/cuda/sum.cuh"
#include "memfit/exec/cuda/transform.cuh"

namespace memfit {

template <class>
buffer cuda::allocate(std::int64_t bytes) const {
  if (bytes == 0) return {};
  detail::on_device_of const device(*this);
  void* p = nullptr;
  auto const error = bytes < 0 ? cudaErrorInvalidValue
                     : detail::is_capturing(*this)
                         ? cudaErrorStreamCaptureUnsupported
                         : cudaMalloc(&p, static_cast<std::size_t>(bytes));
  if (error != cudaSuccess) {
    cudaGetLastError();
    throw memory_error("memfit::cuda: " + detail::words_of("cudaMalloc", error) +
                       ": cannot allocate " + std::to_string(bytes) + " bytes");
  }
  return {p, bytes, [](void* data, std::int64_t) noexcept { cudaFree(data); }};
}

template <class>
void cuda::copy(void* to, void const* from, std::int64_t bytes) const {
  if (bytes <= 0) return;
  detail::on_device_of const device(*this);
  detail::expect_success(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_),
      "cudaMemcpyAsync");
}

template <class>
void cuda::copy_from_host(void* to, void const* from, std::int64_t bytes) const {
  if (bytes > 0) detail::copy_and_wait(*this, to, from, bytes, cudaMemcpyHostToDevice);
}

template <class>
void cuda::copy_to_host(void* to, void const* from, std::int64_t bytes) const {
  if (bytes > 0) detail::copy_and_wait(*this, to, from, bytes, cudaMemcpyDeviceToHost);
}

template <class>
void cuda::fill(void* to, unsigned char value, std::int64_t bytes) const {
  if (bytes <= 0) return;
  detail::on_device_of const device(*this);
  detail::expect_success(cudaMemsetAsync(to, value, static_cast<std::size_t>(bytes), stream_),
                         "cudaMemsetAsync");
}

template <class Program>
void cuda::once(Program const& program) const {
  static_assert(std::is_trivially_copyable_v<Program>,
                "memfit::cuda: a program is trivially copyable");
  detail::launch(*this, detail::run_once<Program>, 1u, program);
}

template <class Rule, class Format, class Column>
void cuda::step(step_item<Rule> const& item, gate g) const {
  detail::launch_step<Rule, Format, Column>(*this, item, g);
}

template <class Rule, class Format, class Column>
owner<step_list<Rule>> cuda::steps() const {
  return owner<step_list<Rule>>(new detail::cuda_list<Rule, Format, Column>(*this));
}

template <class Column>
void cuda::sum(sum_item const& item, sum_call const& call) const {
  detail::launch_sum<Column>(*this, item, call);
}

template <class Column>
owner<sum_list> cuda::sums() const {
  return owner<sum_list>(new detail::cuda_sums<Column>(*this));
}

template <class>
owner<norm_list> cuda::norms() const {
  return owner<norm_list>(new detail::cuda_squares<>(*this));
}

template <class Storage>
void cuda::quantize(void const* in, scalar_kind kind, std::int64_t n, void* codes,
                    void* scales) const {
  detail::launch_transform<detail::warp_quantize<Storage>>(*this, {in, kind, n, codes, scales});
}

template <class Storage>
void cuda::dequantize(void const* codes, void const* scales, std::int64_t n, void* out,
                      scalar_kind kind) const {
  detail::launch_transform<detail::warp_dequantize<Storage>>(*this, {out, kind, n, codes, scales});
}

}  // namespace memfit
