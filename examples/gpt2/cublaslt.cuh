// The functions of cuBLASLt that products need, found when a run first asks for a GPU: to link the
// library adds 150 MB to the memory of every run. Used by the CUDA products of the GPT-2 example.
#pragma once

#include <cublasLt.h>

#include <new>
#include <stdexcept>
#include <string>

namespace gpt2 {

class cublaslt {
 public:
  // Throws user_error where there is no such library.
  static const cublaslt& get();

  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) multiply;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
  decltype(&cublasLtMatmulDescCreate) create_operation;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtGetStatusName) name_of;

 private:
  cublaslt();
};

inline void check(cublasStatus_t result) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  if (result == CUBLAS_STATUS_ALLOC_FAILED) throw std::bad_alloc{};
  throw std::runtime_error(std::string{"cuBLASLt failed with "} + cublaslt::get().name_of(result));
}

}  // namespace gpt2
