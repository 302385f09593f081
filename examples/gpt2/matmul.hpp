// Matrix products c = a b (+ bias) (+ c) of strided, batched matrices: oneDNN in float, plain loops
// in double. Used by the stages of the GPT-2 example; `context` carries the thread count, the made
// products and their scratch.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "tensor.hpp"

namespace gpt2 {

// A view of outer x inner matrices. Transposing swaps the strides.
template <class T>
struct matrix {
  T* data;
  index rows, columns;
  index row_stride, column_stride = 1;
  index outer = 1, inner = 1;
  index outer_stride = 0, inner_stride = 0;

  [[nodiscard]] matrix transposed() const {
    matrix t = *this;
    std::swap(t.rows, t.columns);
    std::swap(t.row_stride, t.column_stride);
    return t;
  }

  operator matrix<const T>() const requires(!std::is_const_v<T>) {
    return {data,  rows,  columns,      row_stride,  column_stride,
            outer, inner, outer_stride, inner_stride};
  }
};

template <class T>
matrix<T> row_major(T* data, index rows, index columns) {
  return {.data = data, .rows = rows, .columns = columns, .row_stride = columns};
}

enum class store { overwrite, add };

class context {
 public:
  explicit context(int threads);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] index scratch_bytes() const;
  [[nodiscard]] double product_seconds() const { return product_seconds_; }

  void multiply(matrix<const float> a, matrix<const float> b, matrix<float> c,
                store mode = store::overwrite, const float* bias = nullptr);
  void multiply(matrix<const double> a, matrix<const double> b, matrix<double> c,
                store mode = store::overwrite, const double* bias = nullptr);

 private:
  struct products;
  int threads_;
  double product_seconds_ = 0;
  std::unique_ptr<products> products_;
};

}  // namespace gpt2
