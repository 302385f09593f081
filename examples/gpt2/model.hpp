// A GPT-2 as a chain of stages that memfit's checkpointed runs: what each stage takes, and its
// forward and backward pass. Used by the trainer, by sampling and by the tests, on
// tensors of float, bf16 or fp16, or of double.
#pragma once

#include <memfit/checkpoint/plan/chain.hpp>
#include <memfit/checkpoint/run/context.hpp>

#include <functional>

#include "stack_memory.hpp"
#include "stages.hpp"

namespace gpt2 {

// Stage 0 is the embedding, whose input are the tokens of a batch; the blocks follow; the last one
// is the head, whose logits it saves, as it is run but once in a training step. Everything is in
// the memory of the backend. Parameters, gradients and backend must outlive it.
template <class T>
class model {
 public:
  // For batches of at most `largest`.
  model(backend<T>& on, const config& sizes, extent largest, const weights<T>& parameters,
        weights<T>& gradients)
      : on_{on}, sizes_{sizes}, shape_{largest}, w_{parameters}, d_w_{gradients} {}

  // The bytes of every stage for batches of the current shape, multiples of the alignment, and
  // times of 1. A block has a variant for each of block_choices.
  [[nodiscard]] memfit::checkpoint::chain chain() const;

  // Of the batches to come: their shape, and the share of elements that are dropped.
  void set_batch(extent shape, float dropped_share);

  void forward(index stage, const void* in, void* out, memfit::checkpoint::context& context);
  void backward(index stage, const void* in, const void* out, void* d_out, void* d_in,
                memfit::checkpoint::context& context);

  // Called after each stage's backward pass from now on: see completed_by.
  void set_after_backward(std::function<void(index)> call);

  // After a forward pass of all stages and before anything else, once: the mean loss, for which it
  // waits. The logits become their gradient, times the loss scale where there is one, a number in
  // the memory of the backend.
  double loss(const token* targets, const float* loss_scale = nullptr);
  // Or the logits of a row, for which it waits.
  void read_logits(index row, wide<T>* to) const;

 private:
  [[nodiscard]] index head() const { return sizes_.layers + 1; }
  [[nodiscard]] block_extents extents() const { return {sizes_, shape_}; }
  void differentiate(index stage, const void* in, void* d_out, void* d_in,
                     memfit::checkpoint::context& context);
  void head_forward_in(stack_memory& kept, const tensor<T>& in);
  [[nodiscard]] tensor<T> hidden(const void* at) const;
  [[nodiscard]] index count_pass() const;
  [[nodiscard]] memfit::checkpoint::variant count_block(block_choice keep) const;
  [[nodiscard]] memfit::checkpoint::variant count_head() const;

  backend<T>& on_;
  config sizes_;
  extent shape_;
  const weights<T>& w_;
  weights<T>& d_w_;
  float dropped_share_ = 0;
  std::function<void(index)> after_backward_;
  void* head_storage_ = nullptr;
  index head_bytes_ = 0;
};

}  // namespace gpt2
