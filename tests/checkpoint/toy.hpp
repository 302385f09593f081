// A chain of small stages with dropout, variants and unequal sizes, run by memfit or by itself.
// Used by the tests of the checkpoint runner, which ask for the same bits from every schedule.
#pragma once

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "memfit/checkpoint/plan.hpp"
#include "memfit/checkpoint/run.hpp"
#include "support/generator.hpp"

namespace test {

namespace plan = memfit::checkpoint;

/// What a training step leaves behind, to be compared bit for bit.
struct outcome {
  std::vector<float> output, input_gradient, parameter_gradients;
  std::mt19937 generator;

  bool operator==(outcome const&) const = default;
};

/// Stages of random widths: y = mask · u / (1 + |u|), u = p · x + x' / 2. Stage 0 is an embedding
/// where `embedding` is set: it has no gradient of its input. Every buffer is overwritten as a
/// whole, scratch and used-up gradients with NaN, so that buffers that overlap do not go unnoticed.
class toy {
 public:
  struct shape {
    std::int64_t stages = 1;
    bool embedding = false;
    bool own_generator = false;  ///< the masks come from an std::mt19937, not from memfit's noise
  };
  struct thrown : std::runtime_error {
    thrown() : std::runtime_error("a stage throws") {}
  };

  toy(shape of, std::uint32_t seed);

  plan::chain chain() const;
  std::vector<float> const& input() const { return input_; }
  std::mt19937& generator() { return generator_; }
  memfit::checkpoint::noise_seed noise() const { return {.seed = 7, .step = 3}; }
  std::int64_t calls() const { return calls_; }
  std::int64_t replays() const { return replays_; }

  /// Back to the state after construction, to throw in the given call; -1 for never.
  void reset(std::int64_t throw_at = -1);
  /// As if every stage had been forward once.
  void everything_is_a_replay() { done_.assign(widths_.size(), true); }
  /// Forward and backward in plain loops, everything kept.
  outcome run_plain();
  /// The same through memfit.
  template <class Runner>
  outcome run(Runner& runner) {
    runner.forward(*this, input_.data(), noise());
    auto const outputs = static_cast<std::size_t>(widths_.back());
    auto const* const y = static_cast<float const*>(runner.output());
    std::vector<float> const output(y, y + outputs);
    write_output_gradient(y, static_cast<float*>(runner.output_gradient()));
    std::vector<float> gradient(embedding_ ? 0 : input_.size());
    runner.backward(*this, embedding_ ? nullptr : gradient.data());
    return {output, gradient, gradients_, generator_};
  }

  void forward(std::int64_t stage, void const* in, void* out, plan::context& c);
  void backward(std::int64_t stage, void const* in, void const* out, void* out_gradient,
                void* in_gradient, plan::context& c);

 private:
  /// The arrays that a stage saves and uses in a variant.
  struct arrays {
    float *u = nullptr, *mask = nullptr;
    std::uint8_t* bits = nullptr;
  };
  static constexpr int variants = 3;

  std::int64_t in_width(std::int64_t stage) const {
    return widths_[static_cast<std::size_t>(stage)];
  }
  std::int64_t out_width(std::int64_t stage) const { return in_width(stage + 1); }
  bool reads_output(std::int64_t stage) const { return stage % 3 == 1; }
  arrays take(std::int64_t stage, int variant, plan::carver& saved) const;
  void count_call();
  void draw(std::int64_t stage, memfit::noise_key key, float* mask);
  void raise(std::int64_t stage, float const* x, float* u) const;
  void bend(std::int64_t stage, float const* u, float const* mask, float* y) const;
  void go_back(std::int64_t stage, float const* x, float const* u, float const* mask,
               float const* y, float* dy, float* dx);
  void write_output_gradient(float const* y, float* dy) const;

  std::vector<std::int64_t> widths_;
  std::vector<std::size_t> first_parameter_;
  bool embedding_, own_generator_;
  std::vector<float> input_, parameters_, gradients_;
  std::mt19937 generator_;
  std::vector<bool> done_;
  std::int64_t calls_ = 0, replays_ = 0, throw_at_ = -1;
};

/// A valid schedule made by throwing dice: which stages run and keep, where the chain is split, in
/// which variants, and which activations wait in the second place.
plan::schedule random_schedule(plan::chain const& stages, bool offload, std::mt19937& dice);

}  // namespace test
