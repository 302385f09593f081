// What a device computes for the network: products, layer norm, GELU, causal softmax, embedding,
// cross-entropy. Used by the stages of the GPT-2 example; all tensors, also those of tokens, lie in
// the backend's own memory, and each call works on whole tensors of `rows` tokens. Elements of 16
// bits are computed with, and summed, in float and rounded to nearest once, as they are stored.
#pragma once

#include <memfit/core/random.hpp>

#include <cstdint>
#include <optional>

#include "config.hpp"
#include "element.hpp"
#include "matrix.hpp"

namespace gpt2 {

// Mean and reciprocal standard deviation of each row, as a layer norm's backward pass needs them.
template <class T>
struct row_moments {
  tensor<wide<T>> mean, reciprocal;
};

// Which elements are dropped: element i of a tensor by the noise of `key` for first + i, so that
// the same ones are dropped again, on any device.
struct dropout {
  float share = 0;
  memfit::noise_key key;
  index first = 0;

  // Noise below this drops an element.
  [[nodiscard]] std::uint32_t threshold() const {
    return static_cast<std::uint32_t>(static_cast<double>(share) * 0x1p32);
  }
  // What the others are multiplied by, so that the mean stays.
  [[nodiscard]] float scale() const { return 1.0F / (1.0F - share); }
};

// Calls take effect in their order; they may return before.
template <class T>
class backend {
 public:
  virtual ~backend() = default;

  [[nodiscard]] virtual memory& own_memory() = 0;
  // Returns when all earlier calls have taken effect.
  virtual void wait() = 0;
  // The time that products took so far, where it is known.
  [[nodiscard]] virtual std::optional<double> product_seconds() const = 0;

  // c = a b (+ bias in every row) (+ c); rows of c are contiguous.
  virtual void multiply(matrix<const T> a, matrix<const T> b, matrix<T> c,
                        store mode = store::overwrite, const T* bias = nullptr) = 0;

  virtual void layer_norm(index rows, const tensor<T>& in, const tensor<T>& gain,
                          const tensor<T>& bias, tensor<T>& out, row_moments<T>& moments) = 0;

  // The output of `layer_norm` again, to the bit, from its moments.
  virtual void normalize(index rows, const tensor<T>& in, const tensor<T>& gain,
                         const tensor<T>& bias, const row_moments<T>& moments, tensor<T>& out) = 0;

  // Adds to d_in, d_gain and d_bias.
  virtual void layer_norm_backward(index rows, const tensor<T>& in, const tensor<T>& gain,
                                   const row_moments<T>& moments, const tensor<T>& d_out,
                                   tensor<T>& d_in, tensor<T>& d_gain, tensor<T>& d_bias) = 0;

  // `out` may be `in`.
  virtual void gelu(index count, const tensor<T>& in, tensor<T>& out) = 0;

  // Turns the gradient of the output into that of the input, in place.
  virtual void gelu_backward(index count, const tensor<T>& in, tensor<T>& gradient) = 0;

  // Scores become probabilities in place: row i of each seq x seq matrix sees columns 0 to i only.
  virtual void causal_softmax(index matrices, index seq, wide<T> scale, tensor<T>& scores) = 0;

  // The gradient of the probabilities becomes that of the scores, in place.
  virtual void causal_softmax_backward(index matrices, index seq, wide<T> scale,
                                       const tensor<T>& probabilities, tensor<T>& gradient) = 0;

  virtual void embed(index rows, index seq, const token* tokens, const tensor<T>& of_token,
                     const tensor<T>& of_position, tensor<T>& out) = 0;

  // Adds to d_of_token and d_of_position.
  virtual void embed_backward(index rows, index seq, const token* tokens, const tensor<T>& d_out,
                              tensor<T>& d_of_token, tensor<T>& d_of_position) = 0;

  // Adds the sum over the rows to `sum`.
  virtual void add_rows(index rows, const tensor<T>& in, tensor<T>& sum) = 0;

  // Fills `losses` and turns the logits into `scale` times their gradient, in place; where there is
  // a loss scale, a number in the backend's memory, times that, too.
  virtual void cross_entropy(index rows, const token* targets, wide<T> scale,
                             const float* loss_scale, tensor<T>& logits,
                             tensor<wide<T>>& losses) = 0;

  // Dropped elements become 0, the others larger. Overwrites `out`, which may be `in`, or adds to
  // it.
  virtual void drop(index count, const dropout& which, const tensor<T>& in, tensor<T>& out,
                    store mode) = 0;

  virtual void copy(index count, const tensor<T>& in, tensor<T>& out) = 0;

  virtual void set_zero(tensor<T>& t) = 0;
};

}  // namespace gpt2
