// Calls of the CUDA runtime and launches of kernels: on the executor's device, errors as
// exceptions. Used by the CUDA driver.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "memfit/core/error.hpp"
#include "memfit/exec/cuda.hpp"

namespace memfit::detail {

inline std::string words_of(char const* call, cudaError_t error) {
  return std::string(call) + ": " + cudaGetErrorName(error) + " (" + cudaGetErrorString(error) +
         ")";
}

/// Throws device_error unless the call went well.
inline void expect_success(cudaError_t error, char const* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw device_error("memfit::cuda: " + words_of(call, error));
}

/// Makes the executor's device the current one while it lives.
class on_device_of {
 public:
  explicit on_device_of(cuda const& exec) {
    if (exec.device() < 0) return;
    expect_success(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != exec.device()) expect_success(cudaSetDevice(exec.device()), "cudaSetDevice");
    moved_ = before_ != exec.device();
  }
  on_device_of(on_device_of const&) = delete;
  on_device_of& operator=(on_device_of const&) = delete;
  ~on_device_of() {
    if (moved_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool moved_ = false;
};

/// Whether the device can read what lies there: memory of a device, or memory of the host that is
/// pinned, managed or, on systems that have it so, any.
inline bool is_reached(cuda const& exec, void const* data) {
  on_device_of const device(exec);
  cudaPointerAttributes found{};
  if (cudaPointerGetAttributes(&found, data) != cudaSuccess) cudaGetLastError();
  if (found.type != cudaMemoryTypeUnregistered) return true;
  int current = 0, pageable = 0;
  expect_success(cudaGetDevice(&current), "cudaGetDevice");
  expect_success(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, current),
                 "cudaDeviceGetAttribute");
  return pageable != 0;
}

/// Whether the executor's stream is being captured: then nothing runs yet, perhaps never.
inline bool is_capturing(cuda const& exec) {
  on_device_of const device(exec);
  auto status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(exec.stream(), &status) != cudaSuccess) cudaGetLastError();
  return status != cudaStreamCaptureStatusNone;
}

/// Waits until the host's side of a copy is free; refused in a capture, which goes on.
inline void copy_and_wait(cuda const& exec, void* to, void const* from, std::int64_t bytes,
                          cudaMemcpyKind kind) {
  if (is_capturing(exec))
    expect_success(cudaErrorStreamCaptureUnsupported, "waiting for a stream that is captured");
  on_device_of const device(exec);
  expect_success(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, exec.stream()),
                 "cudaMemcpyAsync");
  expect_success(cudaStreamSynchronize(exec.stream()), "cudaStreamSynchronize");
}

/// Threads of a block in every kernel: whole warps.
inline constexpr int threads_per_block = 128;
inline constexpr int warps_per_block = threads_per_block / 32;

/// Blocks for this many pieces of work, of which a block takes `per_block` at a time; the kernels
/// stride over what is left.
inline unsigned grid_for(std::int64_t pieces, std::int64_t per_block) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  auto const blocks = block_count(pieces, per_block);
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

template <class Program>
__global__ void run_once(Program const program) {
  if (threadIdx.x == 0) program();
}

/// Launches a kernel in the executor's stream; no blocks, no launch.
template <class... Arguments>
void launch(cuda const& exec, void (*kernel)(Arguments...), unsigned blocks,
            Arguments... arguments) {
  if (blocks == 0) return;
  on_device_of const device(exec);
  void* pointers[] = {&arguments...};
  expect_success(cudaLaunchKernel(reinterpret_cast<void const*>(kernel), dim3(blocks),
                                  dim3(threads_per_block), pointers, 0, exec.stream()),
                 "cudaLaunchKernel");
}

}  // namespace memfit::detail
