// The backend on the host: loops for the compiler to vectorize, split over threads, in float or
// double, on tensors of these or of 16 bits. Used by the host device of the GPT-2 example and by
// the tests.
#pragma once

#include "backend.hpp"
#include "host_products.hpp"
#include "host_rows.hpp"

namespace gpt2 {

// Work is done when a call returns. No result but that of a product depends on the thread count.
template <class T>
class host_backend final : public backend<T> {
 public:
  // What it works in comes from `scratch`.
  explicit host_backend(int threads, memory& scratch = host_memory())
      : threads_{threads}, products_{threads, scratch}, spaces_{scratch} {}

  memory& own_memory() override { return host_memory(); }
  void wait() override {}
  [[nodiscard]] std::optional<double> product_seconds() const override {
    return products_.seconds();
  }

  void multiply(matrix<const T> a, matrix<const T> b, matrix<T> c, store mode,
                const T* bias) override {
    products_.multiply(a, b, c, mode, bias);
  }
  void layer_norm(index rows, const tensor<T>& in, const tensor<T>& gain, const tensor<T>& bias,
                  tensor<T>& out, row_moments<T>& moments) override;
  void normalize(index rows, const tensor<T>& in, const tensor<T>& gain, const tensor<T>& bias,
                 const row_moments<T>& moments, tensor<T>& out) override;
  void layer_norm_backward(index rows, const tensor<T>& in, const tensor<T>& gain,
                           const row_moments<T>& moments, const tensor<T>& d_out, tensor<T>& d_in,
                           tensor<T>& d_gain, tensor<T>& d_bias) override;
  void gelu(index count, const tensor<T>& in, tensor<T>& out) override;
  void gelu_backward(index count, const tensor<T>& in, tensor<T>& gradient) override;
  void causal_softmax(index matrices, index seq, wide<T> scale, tensor<T>& scores) override;
  void causal_softmax_backward(index matrices, index seq, wide<T> scale,
                               const tensor<T>& probabilities, tensor<T>& gradient) override;
  void embed(index rows, index seq, const token* tokens, const tensor<T>& of_token,
             const tensor<T>& of_position, tensor<T>& out) override;
  void embed_backward(index rows, index seq, const token* tokens, const tensor<T>& d_out,
                      tensor<T>& d_of_token, tensor<T>& d_of_position) override;
  void add_rows(index rows, const tensor<T>& in, tensor<T>& sum) override;
  void cross_entropy(index rows, const token* targets, wide<T> scale, const float* loss_scale,
                     tensor<T>& logits, tensor<wide<T>>& losses) override;
  void drop(index count, const dropout& which, const tensor<T>& in, tensor<T>& out,
            store mode) override;
  void copy(index count, const tensor<T>& in, tensor<T>& out) override;
  void set_zero(tensor<T>& t) override;

 private:
  template <class Body>
  void each_row(index rows, index columns, Body body);
  template <class Body>
  void each_column_range(index rows, index columns, Body body);
  template <class Body>
  void each_part(index count, Body body);

  int threads_;
  host_products products_;
  row_spaces<T> spaces_;
};

}  // namespace gpt2
