#include "cuda_products.cuh"

#include <utility>

namespace gpt2 {

namespace {

// What NVIDIA recommends for the largest GPUs. Only what the chosen algorithms need is allocated.
constexpr std::size_t largest_scratch = std::size_t{32} << 20;

// cuBLASLt strides over one index of a batch. Make that the inner one, and the longer one.
template <class T>
matrix<T> with_longer_inner(matrix<T> m) {
  if (m.outer <= m.inner) return m;
  std::swap(m.outer, m.inner);
  std::swap(m.outer_stride, m.inner_stride);
  return m;
}

// cuBLASLt's matrices lie in memory column by column. One that lies row by row is the transpose of
// such a matrix, so instead of c = a b ask for the transpose of c, that of b times that of a.
template <class T>
bool lies_by_rows(const matrix<T>& m) {
  return m.column_stride == 1 && m.row_stride >= m.columns;
}

// What all its matrices start at a multiple of, up to the 128 bytes that tensors in an arena do:
// algorithms, and so bits, must not depend on where in it they lie.
template <class T>
std::uint32_t alignment(const matrix<T>& m) {
  constexpr index size = sizeof(T);
  auto const bits = reinterpret_cast<std::uintptr_t>(m.data) |
                    static_cast<std::uintptr_t>(m.outer_stride * size) |
                    static_cast<std::uintptr_t>(m.inner_stride * size) | 128U;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

template <class T>
constexpr cudaDataType_t type_of = CUDA_R_32F;
template <>
constexpr cudaDataType_t type_of<bf16> = CUDA_R_16BF;
template <>
constexpr cudaDataType_t type_of<fp16> = CUDA_R_16F;

template <class Value>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check(cublaslt::get().set_operation(d, attribute, &value, sizeof value));
}

template <class Value>
void set(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t attribute, Value value) {
  check(cublaslt::get().set_layout(l, attribute, &value, sizeof value));
}

template <class Value>
void set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t attribute,
         Value value) {
  check(cublaslt::get().set_preference(p, attribute, &value, sizeof value));
}

}  // namespace

template <class T>
cuda_products<T>::cuda_products(const cuda_stream& stream, memory& own)
    : stream_{stream}, memory_{own}, scratch_{"scratch", {0}, own} {
  cublasLtHandle_t made = nullptr;
  check(calls_.create(&made));
  library_.reset(made);
}

template <class T>
void cuda_products<T>::multiply(matrix<const T> a, matrix<const T> b, matrix<T> c, store mode,
                                const T* bias) {
  a = with_longer_inner(a);
  b = with_longer_inner(b);
  c = with_longer_inner(c);
  auto const& p = get(a, b, c, mode, bias);
  if (bias != nullptr) set(p.how.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  float const alpha = 1;
  float const beta = mode == store::add ? 1 : 0;
  for (index outer = 0; outer < c.outer; ++outer) {
    T* const to = c.data + outer * c.outer_stride;
    check(calls_.multiply(library_.get(), p.how.get(), &alpha, b.data + outer * b.outer_stride,
                          p.first.get(), a.data + outer * a.outer_stride, p.second.get(), &beta, to,
                          p.result.get(), to, p.result.get(), &p.algorithm, scratch_.data(),
                          static_cast<std::size_t>(scratch_.bytes()), stream_.get()));
  }
}

template <class T>
const typename cuda_products<T>::product& cuda_products<T>::get(const matrix<const T>& a,
                                                                const matrix<const T>& b,
                                                                const matrix<T>& c, store mode,
                                                                const T* bias) {
  alignments const aligned{alignment(b), alignment(a), alignment(c)};
  std::pair const key{key_of<T>(a, b, c, mode, bias != nullptr), aligned};
  auto found = made_.find(key);
  if (found == made_.end()) found = made_.emplace(key, make(a, b, c, aligned, bias)).first;
  return found->second;
}

template <class T>
typename cuda_products<T>::product cuda_products<T>::make(const matrix<const T>& a,
                                                          const matrix<const T>& b,
                                                          const matrix<T>& c,
                                                          const alignments& aligned,
                                                          const T* bias) {
  product p{make_operation(a, b, bias), make_layout(b), make_layout(a), make_layout(c), {}};
  choose_algorithm(p, aligned);
  return p;
}

template <class T>
void cuda_products<T>::choose_algorithm(product& p, const alignments& aligned) {
  cublasLtMatmulPreference_t created = nullptr;
  check(calls_.create_preference(&created));
  preference const wanted{created};
  set(created, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, largest_scratch);
  set(created, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned[0]);
  set(created, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned[1]);
  set(created, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned[2]);
  set(created, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned[2]);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(calls_.choose(library_.get(), p.how.get(), p.first.get(), p.second.get(), p.result.get(),
                      p.result.get(), created, 1, &best, &found));
  check(found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : best.state);
  auto const needed = static_cast<index>(best.workspaceSize);
  if (needed > scratch_.size()) {
    scratch_ = {};
    scratch_ = {"scratch", {needed}, memory_};
  }
  p.algorithm = best.algo;
}

template <class T>
typename cuda_products<T>::operation cuda_products<T>::make_operation(const matrix<const T>& a,
                                                                      const matrix<const T>& b,
                                                                      const T* bias) const {
  cublasLtMatmulDesc_t created = nullptr;
  check(calls_.create_operation(&created, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  operation how{created};
  set(created, CUBLASLT_MATMUL_DESC_TRANSA, lies_by_rows(b) ? CUBLAS_OP_N : CUBLAS_OP_T);
  set(created, CUBLASLT_MATMUL_DESC_TRANSB, lies_by_rows(a) ? CUBLAS_OP_N : CUBLAS_OP_T);
  if (bias != nullptr) {
    set(created, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(created, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  return how;
}

template <class T>
typename cuda_products<T>::layout cuda_products<T>::make_layout(const matrix<const T>& m) const {
  bool const by_rows = lies_by_rows(m);
  cublasLtMatrixLayout_t created = nullptr;
  check(calls_.create_layout(&created, type_of<T>,
                             static_cast<std::uint64_t>(by_rows ? m.columns : m.rows),
                             static_cast<std::uint64_t>(by_rows ? m.rows : m.columns),
                             by_rows ? m.row_stride : m.column_stride));
  layout made{created};
  set(created, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(m.inner));
  set(created, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.inner_stride);
  return made;
}

template class cuda_products<float>;
template class cuda_products<bf16>;
template class cuda_products<fp16>;

}  // namespace gpt2
