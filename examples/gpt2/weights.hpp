// The parameters of a GPT-2, one struct per part of the network; gradients have the same shape and
// type. Used by the stages, the optimizers (through `all`) and the tests; names are those of the
// published checkpoints.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "config.hpp"
#include "element.hpp"

namespace gpt2 {

template <class T>
struct norm_weights {
  tensor<T> gain, bias;
};

// y = x weight + bias, weight stored [in][out].
template <class T>
struct linear_weights {
  tensor<T> weight, bias;
};

template <class T>
struct block_weights {
  norm_weights<T> norm_1;
  linear_weights<T> query_key_value, projection;
  norm_weights<T> norm_2;
  linear_weights<T> up, down;

  [[nodiscard]] std::vector<tensor<T>*> all();
};

template <class T>
struct weights {
  explicit weights(const config& sizes, memory& in = host_memory());

  // Every tensor, in the order of the forward pass.
  [[nodiscard]] std::vector<tensor<T>*> all();
  [[nodiscard]] index bytes();

  tensor<T> of_token, of_position;
  std::vector<block_weights<T>> blocks;
  norm_weights<T> norm;
};

// The weights of the block of a stage, or where its gradients go: gradients may have a single
// block, which all stages use in turn.
template <class Weights>
auto& block_of(Weights& w, index stage) {
  return w.blocks[std::min(static_cast<std::size_t>(stage), w.blocks.size()) - 1];
}

// The gradients that the backward pass of a stage completes, and the place of the first of their
// parameters in `all`. The head's share of the embedding is completed by stage 0.
template <class T>
struct completed {
  index first;
  std::vector<tensor<T>*> gradients;
};

// In a network of so many layers.
template <class T>
completed<T> completed_by(index stage, index layers, weights<T>& gradients);

// Gains 1, biases 0, matrices normal with deviation 0.02, divided by sqrt(2 layers) where a block
// adds to its input.
template <class T>
void initialize(weights<T>& w, index seed);

}  // namespace gpt2
