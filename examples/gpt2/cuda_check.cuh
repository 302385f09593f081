// Errors of the CUDA runtime as exceptions that name them.
// Used by everything of the GPT-2 example that calls it.
#pragma once

#include <cuda_runtime_api.h>

#include <new>
#include <stdexcept>
#include <string>

namespace gpt2 {

inline std::string describe(cudaError_t error) {
  return std::string{cudaGetErrorName(error)} + ": " + cudaGetErrorString(error);
}

inline void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  if (result == cudaErrorMemoryAllocation) throw std::bad_alloc{};
  throw std::runtime_error("CUDA failed with " + describe(result));
}

}  // namespace gpt2
