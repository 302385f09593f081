// Everything of the network that is not a matrix product: layer norm, GELU, causal softmax,
// embedding, cross-entropy. Used by the stages of the GPT-2 example; each kernel works on whole
// tensors of `rows` tokens, in float or double.
#pragma once

#include <cstdint>

#include "tensor.hpp"

namespace gpt2 {

using token = std::uint8_t;

// Mean and reciprocal standard deviation of each row, as a layer norm's backward pass needs them.
template <class T>
struct row_moments {
  tensor<T> mean, reciprocal;
};

template <class T>
void layer_norm(int threads, index rows, const tensor<T>& in, const tensor<T>& gain,
                const tensor<T>& bias, tensor<T>& out, row_moments<T>& moments);

// Adds to d_in, d_gain and d_bias.
template <class T>
void layer_norm_backward(int threads, index rows, const tensor<T>& in, const tensor<T>& gain,
                         const row_moments<T>& moments, const tensor<T>& d_out, tensor<T>& d_in,
                         tensor<T>& d_gain, tensor<T>& d_bias);

template <class T>
void gelu(int threads, index count, const tensor<T>& in, tensor<T>& out);

// Turns the gradient of the output into that of the input, in place.
template <class T>
void gelu_backward(int threads, index count, const tensor<T>& in, tensor<T>& gradient);

// Scores become probabilities in place: row i of each seq x seq matrix sees columns 0 to i only.
template <class T>
void causal_softmax(int threads, index matrices, index seq, T scale, tensor<T>& scores);

// The gradient of the probabilities becomes that of the scores, in place.
template <class T>
void causal_softmax_backward(int threads, index matrices, index seq, T scale,
                             const tensor<T>& probabilities, tensor<T>& gradient);

template <class T>
void embed(int threads, index rows, index seq, const token* tokens, const tensor<T>& of_token,
           const tensor<T>& of_position, tensor<T>& out);

template <class T>
void embed_backward(int threads, index rows, index seq, const token* tokens, const tensor<T>& d_out,
                    tensor<T>& d_of_token, tensor<T>& d_of_position);

// Adds the sum over the rows to `sum`.
template <class T>
void add_rows(int threads, index rows, const tensor<T>& in, tensor<T>& sum);

// Fills `losses` and turns the logits into `scale` times their gradient, in place.
template <class T>
void cross_entropy(int threads, index rows, const token* targets, T scale, tensor<T>& logits,
                   tensor<T>& losses);

template <class T>
void copy(int threads, index count, const tensor<T>& in, tensor<T>& out);

template <class T>
void set_zero(int threads, tensor<T>& t);

}  // namespace gpt2
