// Views of strided, batched matrices, and the key under which a backend keeps what it has made for
// a product of such views. Used by the stages and the backends of the GPT-2 example.
#pragma once

#include <compare>
#include <concepts>
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

  auto operator<=>(const matrix&) const = default;

  template <std::same_as<const T> C>
  requires(!std::is_const_v<T>) operator matrix<C>() const {
    return {data,  rows,  columns,      row_stride,  column_stride,
            outer, inner, outer_stride, inner_stride};
  }
};

template <class T>
matrix<T> row_major(T* data, index rows, index columns) {
  return {.data = data, .rows = rows, .columns = columns, .row_stride = columns};
}

enum class store { overwrite, add };

// The same view of data of another type.
template <class U, class T>
matrix<U> view_as(U* data, const matrix<T>& m) {
  return {data,    m.rows,  m.columns,      m.row_stride,  m.column_stride,
          m.outer, m.inner, m.outer_stride, m.inner_stride};
}

// Everything about a product c = a b (+ bias) (+ c) but types and addresses.
struct product_key {
  matrix<const void> a, b, c;
  store mode;
  bool has_bias;

  auto operator<=>(const product_key&) const = default;
};

template <class T>
product_key key_of(const matrix<const T>& a, const matrix<const T>& b, const matrix<const T>& c,
                   store mode, bool has_bias) {
  auto const anywhere = [](const matrix<const T>& m) { return view_as<const void>(nullptr, m); };
  return {anywhere(a), anywhere(b), anywhere(c), mode, has_bias};
}

}  // namespace gpt2
