// The backend on a GPU, in float: cuBLASLt's products and kernels of our own, in one stream. Every
// sum has a fixed order, so a run repeats itself to the bit. Used by the CUDA device of the GPT-2
// example.
#pragma once

#include "backend.hpp"
#include "cuda_products.cuh"

namespace gpt2 {

class cuda_backend final : public backend<float> {
 public:
  explicit cuda_backend(const cuda_stream& stream)
      : stream_{stream}, memory_{stream}, products_{stream, memory_} {}

  memory& own_memory() override { return memory_; }
  void wait() override { stream_.wait(); }
  [[nodiscard]] index scratch_bytes() const override { return products_.scratch_bytes(); }
  [[nodiscard]] std::optional<double> product_seconds() const override { return std::nullopt; }

  void multiply(matrix<const float> a, matrix<const float> b, matrix<float> c, store mode,
                const float* bias) override {
    products_.multiply(a, b, c, mode, bias);
  }
  void layer_norm(index rows, const tensor<float>& in, const tensor<float>& gain,
                  const tensor<float>& bias, tensor<float>& out,
                  row_moments<float>& moments) override;
  void normalize(index rows, const tensor<float>& in, const tensor<float>& gain,
                 const tensor<float>& bias, const row_moments<float>& moments,
                 tensor<float>& out) override;
  void layer_norm_backward(index rows, const tensor<float>& in, const tensor<float>& gain,
                           const row_moments<float>& moments, const tensor<float>& d_out,
                           tensor<float>& d_in, tensor<float>& d_gain,
                           tensor<float>& d_bias) override;
  void gelu(index count, const tensor<float>& in, tensor<float>& out) override;
  void gelu_backward(index count, const tensor<float>& in, tensor<float>& gradient) override;
  void causal_softmax(index matrices, index seq, float scale, tensor<float>& scores) override;
  void causal_softmax_backward(index matrices, index seq, float scale,
                               const tensor<float>& probabilities,
                               tensor<float>& gradient) override;
  void embed(index rows, index seq, const token* tokens, const tensor<float>& of_token,
             const tensor<float>& of_position, tensor<float>& out) override;
  void embed_backward(index rows, index seq, const token* tokens, const tensor<float>& d_out,
                      tensor<float>& d_of_token, tensor<float>& d_of_position) override;
  void add_rows(index rows, const tensor<float>& in, tensor<float>& sum) override;
  void cross_entropy(index rows, const token* targets, float scale, tensor<float>& logits,
                     tensor<float>& losses) override;
  void drop(index count, const dropout& which, const tensor<float>& in, tensor<float>& out,
            store mode) override;
  void copy(index count, const tensor<float>& in, tensor<float>& out) override;
  void set_zero(tensor<float>& t) override;

 private:
  const cuda_stream& stream_;
  cuda_memory memory_;
  cuda_products products_;
};

}  // namespace gpt2
