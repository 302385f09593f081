// Matrix products on the host: oneDNN in float and, where it can, in types of 16 bits, which it
// sums in float; plain loops in double. Used by the host backend of the GPT-2 example.
#pragma once

#include <memory>

#include "element.hpp"
#include "matrix.hpp"

namespace gpt2 {

// Carries the thread count, the made products and their scratch. Where oneDNN has no product in a
// type of 16 bits, the scratch holds copies of the matrices in float.
class host_products {
 public:
  host_products(int threads, memory& scratch);
  ~host_products();
  host_products(const host_products&) = delete;
  host_products& operator=(const host_products&) = delete;

  [[nodiscard]] double seconds() const { return seconds_; }

  template <class T>
  void multiply(matrix<const T> a, matrix<const T> b, matrix<T> c, store mode, const T* bias);
  void multiply(matrix<const double> a, matrix<const double> b, matrix<double> c, store mode,
                const double* bias);

 private:
  struct made_products;
  int threads_;
  double seconds_ = 0;
  std::unique_ptr<made_products> made_;
};

}  // namespace gpt2
