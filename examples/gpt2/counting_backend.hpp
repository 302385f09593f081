// A backend that computes nothing: stages that run on it tell the memory that they take.
// Used by the model of the GPT-2 example, which makes a chain of its stages' bytes.
#pragma once

#include "backend.hpp"

namespace gpt2 {

template <class T>
class counting_backend final : public backend<T> {
 public:
  memory& own_memory() override { return host_memory(); }
  void wait() override {}
  [[nodiscard]] std::optional<double> product_seconds() const override { return std::nullopt; }

  void multiply(matrix<const T>, matrix<const T>, matrix<T>, store, const T*) override {}
  void layer_norm(index, const tensor<T>&, const tensor<T>&, const tensor<T>&, tensor<T>&,
                  row_moments<T>&) override {}
  void normalize(index, const tensor<T>&, const tensor<T>&, const tensor<T>&, const row_moments<T>&,
                 tensor<T>&) override {}
  void layer_norm_backward(index, const tensor<T>&, const tensor<T>&, const row_moments<T>&,
                           const tensor<T>&, tensor<T>&, tensor<T>&, tensor<T>&) override {}
  void gelu(index, const tensor<T>&, tensor<T>&) override {}
  void gelu_backward(index, const tensor<T>&, tensor<T>&) override {}
  void causal_softmax(index, index, wide<T>, tensor<T>&) override {}
  void causal_softmax_backward(index, index, wide<T>, const tensor<T>&, tensor<T>&) override {}
  void embed(index, index, const token*, const tensor<T>&, const tensor<T>&, tensor<T>&) override {}
  void embed_backward(index, index, const token*, const tensor<T>&, tensor<T>&,
                      tensor<T>&) override {}
  void add_rows(index, const tensor<T>&, tensor<T>&) override {}
  void cross_entropy(index, const token*, wide<T>, const float*, tensor<T>&,
                     tensor<wide<T>>&) override {}
  void drop(index, const dropout&, const tensor<T>&, tensor<T>&, store) override {}
  void copy(index, const tensor<T>&, tensor<T>&) override {}
  void set_zero(tensor<T>&) override {}
};

}  // namespace gpt2
