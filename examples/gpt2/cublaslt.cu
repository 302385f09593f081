#include "cublaslt.cuh"

#include <dlfcn.h>

#include "user_error.hpp"

namespace gpt2 {

namespace {

[[noreturn]] void refuse() {
  throw user_error(std::string{"--device cuda: "} + dlerror());
}

template <class Function>
void find(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) refuse();
}

}  // namespace

const cublaslt& cublaslt::get() {
  static const cublaslt functions;
  return functions;
}

cublaslt::cublaslt() {
  auto const file = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse();
  find(library, create, "cublasLtCreate");
  find(library, destroy, "cublasLtDestroy");
  find(library, multiply, "cublasLtMatmul");
  find(library, choose, "cublasLtMatmulAlgoGetHeuristic");
  find(library, create_operation, "cublasLtMatmulDescCreate");
  find(library, destroy_operation, "cublasLtMatmulDescDestroy");
  find(library, set_operation, "cublasLtMatmulDescSetAttribute");
  find(library, create_layout, "cublasLtMatrixLayoutCreate");
  find(library, destroy_layout, "cublasLtMatrixLayoutDestroy");
  find(library, set_layout, "cublasLtMatrixLayoutSetAttribute");
  find(library, create_preference, "cublasLtMatmulPreferenceCreate");
  find(library, destroy_preference, "cublasLtMatmulPreferenceDestroy");
  find(library, set_preference, "cublasLtMatmulPreferenceSetAttribute");
  find(library, name_of, "cublasLtGetStatusName");
}

}  // namespace gpt2
