// memfit's checkpointed on the executor of a device, behind one face, and how long the stages that
// it runs take there. Used by the devices, which make it, by the trainer and by sampling.
#pragma once

#include <memfit/checkpoint/profile.hpp>
#include <memfit/checkpoint/run.hpp>

#include <algorithm>
#include <memory>

#include "model.hpp"

namespace gpt2 {

// Carries out one schedule in one arena.
template <class T>
class runner {
 public:
  virtual ~runner() = default;
  // Up to the turn; may be repeated, for batches of any shape up to that of the chain.
  virtual void forward(model<T>& with, const token* tokens,
                       memfit::checkpoint::noise_seed noise) = 0;
  virtual void backward(model<T>& with) = 0;
  [[nodiscard]] virtual index arena_bytes() const = 0;
};

template <class Executor, class T>
class runner_on final : public runner<T> {
 public:
  runner_on(const Executor& exec, const memfit::checkpoint::chain& stages,
            const memfit::checkpoint::schedule& plan)
      : run_{exec, stages, plan} {}

  void forward(model<T>& with, const token* tokens, memfit::checkpoint::noise_seed noise) override {
    run_.forward(with, tokens, noise);
  }
  void backward(model<T>& with) override { run_.backward(with); }
  [[nodiscard]] index arena_bytes() const override { return run_.arena_bytes(); }

 private:
  memfit::checkpointed<Executor> run_;
};

// Embedding, one block and head: as blocks are alike, they tell the times of all stages.
template <class T>
struct unlike_stages {
  model<T>& all;
  index last;

  [[nodiscard]] index in_all(index stage) const { return stage < 2 ? stage : last; }

  void forward(index stage, const void* in, void* out, memfit::checkpoint::context& context) {
    all.forward(in_all(stage), in, out, context);
  }
  void backward(index stage, const void* in, const void* out, void* d_out, void* d_in,
                memfit::checkpoint::context& context) {
    all.backward(in_all(stage), in, out, d_out, d_in, context);
  }
};

// The chain of the model, with times in nanoseconds. Takes memory for one block meanwhile, and adds
// to the gradients. `tokens` are any batch of the current shape.
template <class Executor, class T>
memfit::checkpoint::chain with_times(const Executor& exec, model<T>& network, const token* tokens) {
  auto stages = network.chain();
  auto const measured =
      memfit::checkpoint::profile(exec, unlike_stages<T>{network, std::ssize(stages) - 1},
                                  {stages.front(), stages[1], stages.back()}, tokens);
  std::fill(stages.begin(), stages.end(), measured[1]);
  stages.front() = measured.front();
  stages.back() = measured.back();
  return stages;
}

}  // namespace gpt2
