// The backend on a GPU: cuBLASLt's products and kernels of our own, in one stream, on tensors of
// float, bf16 or fp16. Every sum has a fixed order, so a run repeats itself to the bit. Used by the
// CUDA device of the GPT-2 example.
#pragma once

#include "backend.hpp"
#include "counted_memory.hpp"
#include "cuda_products.cuh"

namespace gpt2 {

template <class T>
class cuda_backend final : public backend<T> {
 public:
  // What products work in counts in the budget.
  cuda_backend(const cuda_stream& stream, budget& counts)
      : stream_{stream},
        memory_{stream},
        scratch_{memory_, counts, category::workspace},
        products_{stream, scratch_} {}

  memory& own_memory() override { return memory_; }
  void wait() override { stream_.wait(); }
  [[nodiscard]] std::optional<double> product_seconds() const override { return std::nullopt; }

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
  void causal_softmax(index matrices, index seq, float scale, tensor<T>& scores) override;
  void causal_softmax_backward(index matrices, index seq, float scale,
                               const tensor<T>& probabilities, tensor<T>& gradient) override;
  void embed(index rows, index seq, const token* tokens, const tensor<T>& of_token,
             const tensor<T>& of_position, tensor<T>& out) override;
  void embed_backward(index rows, index seq, const token* tokens, const tensor<T>& d_out,
                      tensor<T>& d_of_token, tensor<T>& d_of_position) override;
  void add_rows(index rows, const tensor<T>& in, tensor<T>& sum) override;
  void cross_entropy(index rows, const token* targets, float scale, const float* loss_scale,
                     tensor<T>& logits, tensor<float>& losses) override;
  void drop(index count, const dropout& which, const tensor<T>& in, tensor<T>& out,
            store mode) override;
  void copy(index count, const tensor<T>& in, tensor<T>& out) override;
  void set_zero(tensor<T>& t) override;

 private:
  const cuda_stream& stream_;
  cuda_memory memory_;
  counted_memory scratch_;
  cuda_products<T> products_;
};

}  // namespace gpt2
