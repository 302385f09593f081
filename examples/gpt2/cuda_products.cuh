// Matrix products on a GPU, by cuBLASLt: of float, bf16 or fp16, summed in fp32.
// Used by the CUDA backend of the GPT-2 example.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "cublaslt.cuh"
#include "cuda_memory.cuh"
#include "element.hpp"
#include "matrix.hpp"

namespace gpt2 {

// Carries the made products and their scratch.
template <class T>
class cuda_products {
 public:
  cuda_products(const cuda_stream& stream, memory& own);

  void multiply(matrix<const T> a, matrix<const T> b, matrix<T> c, store mode, const T* bias);

 private:
  // Destroys by a member of cublaslt.
  template <auto Function>
  struct destroy {
    template <class Opaque>
    void operator()(Opaque* p) const {
      (cublaslt::get().*Function)(p);
    }
  };
  template <class Opaque, auto Function>
  using owned = std::unique_ptr<Opaque, destroy<Function>>;
  using library = owned<cublasLtContext, &cublaslt::destroy>;
  using operation = owned<cublasLtMatmulDescOpaque_t, &cublaslt::destroy_operation>;
  using layout = owned<cublasLtMatrixLayoutOpaque_t, &cublaslt::destroy_layout>;
  using preference = owned<cublasLtMatmulPreferenceOpaque_t, &cublaslt::destroy_preference>;

  // In cuBLASLt's order: its first matrix is our b, its second our a.
  struct product {
    operation how;
    layout first, second, result;
    cublasLtMatmulAlgo_t algorithm;
  };
  using alignments = std::array<std::uint32_t, 3>;

  const product& get(const matrix<const T>& a, const matrix<const T>& b, const matrix<T>& c,
                     store mode, const T* bias);
  product make(const matrix<const T>& a, const matrix<const T>& b, const matrix<T>& c,
               const alignments& aligned, const T* bias);
  void choose_algorithm(product& p, const alignments& aligned);

  [[nodiscard]] operation make_operation(const matrix<const T>& a, const matrix<const T>& b,
                                         const T* bias) const;
  [[nodiscard]] layout make_layout(const matrix<const T>& m) const;

  const cuda_stream& stream_;
  memory& memory_;
  const cublaslt& calls_ = cublaslt::get();
  library library_;
  std::map<std::pair<product_key, alignments>, product> made_;
  tensor<std::byte> scratch_;
};

}  // namespace gpt2
