// The stages of the network: embedding, block, head. Each runs forward from an input to an output,
// saving what its backward pass needs, and backward, from the gradient of the output to that of the
// input. Used by the model, which is a chain of them; buffers are the caller's, in the memory of
// the backend, and what nobody keeps is on a stack that the caller lends.
#pragma once

#include <array>

#include "backend.hpp"
#include "weights.hpp"

namespace gpt2 {

// A batch in a network, and the extents of the tensors that a block makes of it.
struct block_extents {
  config sizes;
  extent shape;

  [[nodiscard]] std::vector<index> narrow() const { return {shape.rows(), sizes.channels}; }
  [[nodiscard]] std::vector<index> packed() const { return {shape.rows(), 3 * sizes.channels}; }
  [[nodiscard]] std::vector<index> wide() const { return {shape.rows(), 4 * sizes.channels}; }
  [[nodiscard]] std::vector<index> squares() const {
    return {shape.batch * sizes.heads, shape.seq, shape.seq};
  }
};

// Which tensors a block keeps for its backward pass, beside the moments of its norms. What it does
// not keep is computed again there, with the same bits.
struct block_choice {
  bool products = false;       // what projections made: query_key_value, attended, middle, raised
  bool probabilities = false;  // of the attention, computed again by one product and the softmax
  bool elementwise = false;    // normed_1, normed_2 and bent, computed again element by element
};

// From everything to least; the numbers of these are those of the variants in the chain.
inline constexpr std::array block_choices{block_choice{true, true, true},
                                          block_choice{true, true, false},
                                          block_choice{true, false, false}};

// What a block keeps between forward and backward; what is not kept is empty.
template <class T>
struct block_saved {
  block_saved(const block_extents& of, block_choice keep, memory& in);

  row_moments<T> moments_1;
  tensor<T> normed_1, query_key_value, probabilities, attended;
  tensor<T> middle;
  row_moments<T> moments_2;
  tensor<T> normed_2, raised, bent;
};

template <class T>
struct head_saved {
  head_saved(const config& sizes, extent shape, memory& in);

  row_moments<T> moments;
  tensor<T> normed, logits;
  tensor<wide<T>> losses;
};

// Backward passes may change the gradient of the output.
template <class T>
void embedding_forward(backend<T>& on, extent shape, const token* tokens, const weights<T>& w,
                       const dropout& drop, tensor<T>& out);
template <class T>
void embedding_backward(backend<T>& on, extent shape, const token* tokens, const dropout& drop,
                        tensor<T>& d_out, weights<T>& d_w);

// Without `out` the last product is left out. Where `saved` keeps no products, `out` is needed.
template <class T>
void block_forward(backend<T>& on, const block_extents& of, const block_weights<T>& w,
                   const dropout& drop, const tensor<T>& in, tensor<T>* out, block_saved<T>& saved,
                   memory& scratch);
// Overwrites d_in.
template <class T>
void block_backward(backend<T>& on, const block_extents& of, const block_weights<T>& w,
                    const dropout& drop, const tensor<T>& in, block_saved<T>& saved,
                    tensor<T>& d_out, tensor<T>& d_in, block_weights<T>& d_w, memory& scratch);

// Forward ends in the logits; `head_loss`, which waits for the backend, turns them into their
// gradient, which backward starts from.
template <class T>
void head_forward(backend<T>& on, extent shape, const weights<T>& w, const tensor<T>& in,
                  head_saved<T>& saved);
template <class T>
double head_loss(backend<T>& on, extent shape, const token* targets, const float* loss_scale,
                 head_saved<T>& saved);
template <class T>
void head_backward(backend<T>& on, extent shape, const weights<T>& w, const tensor<T>& in,
                   const head_saved<T>& saved, tensor<T>& d_in, weights<T>& d_w, memory& scratch);

}  // namespace gpt2
