// The stages of the network: embedding, block, head. Each runs forward from an input to an output,
// keeping what its backward pass needs, and backward in place: the gradient of the output becomes
// that of the input. Used by the model, which is a chain of them; buffers are the caller's, in the
// memory of the backend.
#pragma once

#include "backend.hpp"
#include "weights.hpp"

namespace gpt2 {

// What a block keeps between forward and backward.
template <class T>
struct block_saved {
  block_saved(const config& sizes, extent shape, memory& in);

  row_moments<T> moments_1;
  tensor<T> normed_1, query_key_value, probabilities, attended;
  tensor<T> middle;
  row_moments<T> moments_2;
  tensor<T> normed_2, raised, bent;

  [[nodiscard]] index bytes() const;
};

template <class T>
struct head_saved {
  head_saved(const config& sizes, extent shape, memory& in);

  row_moments<T> moments;
  tensor<T> normed, logits, losses;

  [[nodiscard]] index bytes() const;
};

// What backward passes write over and nobody keeps; one serves all stages.
template <class T>
struct workspace {
  workspace(const config& sizes, extent shape, memory& in = host_memory());

  tensor<T> gradient;
  tensor<T> narrow, wide, scores;

  [[nodiscard]] index bytes() const;
};

template <class T>
void embedding_forward(backend<T>& on, extent shape, const token* tokens, const weights<T>& w,
                       tensor<T>& out);
template <class T>
void embedding_backward(backend<T>& on, extent shape, const token* tokens,
                        const tensor<T>& gradient, weights<T>& d_w);

template <class T>
void block_forward(backend<T>& on, const config& sizes, extent shape, const block_weights<T>& w,
                   const tensor<T>& in, tensor<T>& out, block_saved<T>& saved);
template <class T>
void block_backward(backend<T>& on, const config& sizes, extent shape, const block_weights<T>& w,
                    const tensor<T>& in, const block_saved<T>& saved, tensor<T>& gradient,
                    block_weights<T>& d_w, workspace<T>& space);

// Forward ends in the logits; `head_loss`, which waits for the backend, turns them into their
// gradient, which backward starts from.
template <class T>
void head_forward(backend<T>& on, extent shape, const weights<T>& w, const tensor<T>& in,
                  head_saved<T>& saved);
template <class T>
double head_loss(backend<T>& on, extent shape, const token* targets, head_saved<T>& saved);
template <class T>
void head_backward(backend<T>& on, extent shape, const weights<T>& w, const tensor<T>& in,
                   const head_saved<T>& saved, tensor<T>& gradient, weights<T>& d_w,
                   workspace<T>& space);

}  // namespace gpt2
