// A GPT-2 as a chain of stages over buffers that the caller owns, in the memory of the backend:
// tokens, activations of one batch, a workspace, gradients. Used by the trainer, by sampling and by
// the tests, in float or double.
#pragma once

#include "stages.hpp"

namespace gpt2 {

// Every activation of one batch: the output of each stage and what each stage keeps.
template <class T>
struct activations {
  activations(const config& sizes, extent shape, memory& in = host_memory());

  // hidden[0] is the embedding's output, hidden[i + 1] that of block i.
  std::vector<tensor<T>> hidden;
  std::vector<block_saved<T>> blocks;
  head_saved<T> head;

  [[nodiscard]] index bytes() const;
};

// `shape` may be smaller than the one the activations were made for.
template <class T>
void forward(backend<T>& on, const config& sizes, extent shape, const token* tokens,
             const weights<T>& w, activations<T>& act);

// The mean loss of the last forward pass, for which it waits. The logits become their gradient.
template <class T>
double loss(backend<T>& on, extent shape, const token* targets, activations<T>& act);

// After `loss`; adds to the gradients.
template <class T>
void backward(backend<T>& on, const config& sizes, extent shape, const token* tokens,
              const weights<T>& w, const activations<T>& act, weights<T>& gradients,
              workspace<T>& space);

}  // namespace gpt2
