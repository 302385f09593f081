// Carries out a checkpointing schedule with the user's own stages, forward and backward.
// Used by training loops whose activations do not fit; checkpoint/plan.hpp makes the schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"
#include "memfit/checkpoint/run/buffers.hpp"
#include "memfit/checkpoint/run/context.hpp"
#include "memfit/checkpoint/run/program.hpp"
#include "memfit/checkpoint/run/random_state.hpp"
#include "memfit/checkpoint/run/storage.hpp"
#include "memfit/core/error.hpp"
#include "memfit/core/memory.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit {

namespace checkpoint {

/// What a user brings along; each is referred to and must outlive the runner.
struct options {
  generator_ref generator = {};        ///< rewound for replays
  storage_ref storage = {};            ///< instead of an arena of the executor
  second_place_ref second_place = {};  ///< instead of host memory
};

}  // namespace checkpoint

/// A chain of stages that is trained with the schedule of a planner: `forward` up to the turn,
/// where the user reads `output` and writes `output_gradient`, then `backward`.
///
/// The stages are those of a model of the user's: see has_stage_forward and has_stage_backward. The
/// same stage may be called forward several times in one training step, with the same input, noise
/// and random state, and backward once; all calls are made in the calling thread.
///
/// Memory: one arena of the executor, made here; of schedule.peak bytes where the chain's bytes are
/// multiples of the alignment (see rounded) and the schedule is a planner's. One buffer of host
/// memory of schedule.second_peak bytes where the schedule offloads. Both instead of that: see
/// options.
///
/// Ordered on the executor. `forward` and `backward` allocate nothing and wait for nothing, so they
/// can be captured in a CUDA graph, unless a storage of the user's does so or the schedule stores
/// and loads, whose copies from and to the host wait. Less than a microsecond per action.
///
/// Where a stage throws, the exception passes through; buffers of a user's storage have been given
/// back, the random generator is as it was before the call, and the next thing to do is `forward`.
/// Movable; a runner that was moved from may only be destroyed or assigned to.
template <executor E>
class checkpointed {
 public:
  /// Throws argument_error where the schedule is not valid for the chain or was planned for other
  /// bytes, memory_error where the arena or the host memory cannot be had.
  checkpointed(E exec, checkpoint::chain chain, checkpoint::schedule const& schedule,
               checkpoint::options const& options = {})
      : exec_(std::move(exec)),
        chain_(std::move(chain)),
        program_(checkpoint::detail::compile(chain_, schedule)),
        options_(options),
        arena_(options.storage ? buffer{} : arena_of(exec_, program_.arena_bytes)),
        second_(options.second_place ? buffer{} : on_host(program_.second_bytes)),
        buffers_(chain_.size(), arena_.data(), options.storage) {
    if (options.generator) random_ = options.generator.states(chain_.size() + 2);
  }

  /// Runs the stages to the turn. A second one without a backward starts anew. `input` stays the
  /// caller's and is read until the end of `backward`. Device memory for a device.
  template <class Model>
  void forward(Model&& model, void const* input, checkpoint::noise_seed noise = {}) {
    checkpoint::detail::require_forward<std::remove_reference_t<Model>>();
    abandon();
    input_ = input;
    noise_ = noise;
    attempt([&] {
      buffers_.begin(buffers_.gradients(), program_.gradient_bytes, 0);
      for (std::size_t i = 0; i < program_.turn; ++i) perform(model, program_.operations[i]);
    });
    turned_ = true;
  }

  /// The last activation, null where it has no bytes. Between `forward` and `backward`; else throws
  /// argument_error.
  void const* output() const {
    require_turned("output");
    return activation(last());
  }
  /// Where the user writes the gradient of the last activation, null where the chain says that the
  /// user keeps it. Between `forward` and `backward`; else throws argument_error.
  void* output_gradient() const {
    require_turned("output_gradient");
    return gradient(last());
  }

  /// Runs the rest: every stage's backward once, after the forwards that it takes.
  /// `input_gradient` is where the first stage writes the gradient of the input; null where it has
  /// none. Throws argument_error without a `forward` before, or where the schedule is a forward
  /// alone.
  template <class Model>
  void backward(Model&& model, void* input_gradient = nullptr) {
    using model_type = std::remove_reference_t<Model>;
    checkpoint::detail::require_forward<model_type>();
    checkpoint::detail::require_backward<model_type>();
    require_turned("backward");
    if (!program_.trains)
      throw argument_error("memfit::checkpointed::backward: the schedule is a forward alone");
    attempt([&] {
      for (auto i = program_.turn + 1; i < program_.operations.size(); ++i) {
        auto const& o = program_.operations[i];
        if (o.what == checkpoint::act::backward)
          go_back(model, o, input_gradient);
        else
          perform(model, o);
      }
    });
    abandon();
  }

  /// What the arena takes of the executor's memory; 0 with a storage of the user's.
  std::int64_t arena_bytes() const { return arena_.bytes(); }
  /// What copies in the second place take of host memory; 0 with a second place of the user's.
  std::int64_t second_bytes() const { return second_.bytes(); }

 private:
  using act = checkpoint::act;
  using operation = checkpoint::detail::operation;

  static buffer arena_of(E const& exec, std::int64_t bytes) {
    try {
      return memfit::detail::allocate(exec, bytes, memory_use::activations);
    } catch (memory_error const& e) {
      throw memory_error("memfit::checkpointed: the arena of activations: " +
                         std::string(e.what()));
    }
  }
  static buffer on_host(std::int64_t bytes) {
    if (bytes == 0) return {};
    void* const p = ::operator new(static_cast<std::size_t>(bytes), std::nothrow);
    if (p == nullptr)
      throw memory_error("memfit::checkpointed: cannot allocate " + std::to_string(bytes) +
                         " bytes of host memory for activations in the second place");
    return {p, bytes, [](void* data, std::int64_t) noexcept { ::operator delete(data); }};
  }

  std::size_t last() const { return chain_.size(); }
  // Numbers of random states: one of each stage, then these two.
  std::size_t real_state() const { return last(); }
  std::size_t state_before_call() const { return last() + 1; }

  void const* activation(std::size_t i) const { return i == 0 ? input_ : buffers_[i]; }
  std::int64_t bytes_of(std::size_t activation) const { return chain_[activation - 1].output; }

  /// Neighbours are at opposite ends of their region.
  void* gradient(std::size_t of) const {
    auto const bytes = of == 0 ? 0 : chain_[of - 1].gradient;
    if (bytes == 0) return nullptr;
    auto* const region = static_cast<char*>(buffers_[buffers_.gradients()]);
    return of % 2 == 0 ? region : region + program_.gradient_bytes - checkpoint::rounded(bytes);
  }

  void require_turned(char const* call) const {
    if (!turned_)
      throw argument_error(std::string("memfit::checkpointed::") + call +
                           ": there is no forward before it that is still to go back");
  }

  void abandon() {
    turned_ = false;
    buffers_.end_all();
  }

  template <class Work>
  void attempt(Work const& work) {
    if (options_.generator) random_->save(state_before_call());
    try {
      work();
    } catch (...) {
      abandon();
      if (options_.generator) random_->restore(state_before_call());
      throw;
    }
  }

  checkpoint::context context_of(operation const& o, std::int64_t saved, std::int64_t scratch) {
    auto const i = static_cast<std::size_t>(o.index);
    return {.replay = o.replay,
            .wants_output = o.output,
            .variant = o.variant,
            .noise = checkpoint::stage_noise(noise_, o.index),
            .saved = {buffers_[buffers_.saved(i)], saved, "saved", o.index},
            .scratch = {buffers_.begin(buffers_.scratch(), scratch, o.scratch), scratch, "scratch",
                        o.index}};
  }

  template <class Model>
  void perform(Model& model, operation const& o) {
    auto const i = static_cast<std::size_t>(o.index);
    switch (o.what) {
      case act::pass:
        return go_forward(model, o, 0, chain_[i].scratch);
      case act::run: {
        auto const& v = chain_[i].variants[static_cast<std::size_t>(o.variant)];
        buffers_.begin(buffers_.saved(i), v.saved, o.saved);
        return go_forward(model, o, v.saved, v.forward_scratch);
      }
      case act::drop:
        return buffers_.end(i);
      case act::store:
        return store(o);
      case act::load:
        return load(o);
      case act::turn:
      case act::backward:
      case act::discard:
        return;
    }
  }

  template <class Model>
  void go_forward(Model& model, operation const& o, std::int64_t saved, std::int64_t scratch) {
    auto const i = static_cast<std::size_t>(o.index);
    void* const out = o.output ? buffers_.begin(i + 1, chain_[i].output, o.made) : nullptr;
    auto context = context_of(o, saved, scratch);
    if (options_.generator && o.replay) {
      random_->save(real_state());
      random_->restore(i);
    } else if (options_.generator) {
      random_->save(i);
    }
    model.forward(o.index, activation(i), out, context);
    if (options_.generator && o.replay) random_->restore(real_state());
    buffers_.end(buffers_.scratch());
  }

  template <class Model>
  void go_back(Model& model, operation const& o, void* input_gradient) {
    auto const i = static_cast<std::size_t>(o.index);
    auto const& v = chain_[i].variants[static_cast<std::size_t>(o.variant)];
    auto context = context_of(o, v.saved, v.backward_scratch);
    model.backward(o.index, activation(i), chain_[i].reads_output ? activation(i + 1) : nullptr,
                   gradient(i + 1), i == 0 ? input_gradient : gradient(i), context);
    buffers_.end(buffers_.scratch());
    buffers_.end(buffers_.saved(i));
  }

  void store(operation const& o) {
    auto const i = static_cast<std::size_t>(o.index);
    if (options_.second_place)
      options_.second_place.store(o.index, buffers_[i], bytes_of(i));
    else
      exec_.copy_to_host(copy_at(o), buffers_[i], bytes_of(i));
  }
  void load(operation const& o) {
    auto const i = static_cast<std::size_t>(o.index);
    void* const to = buffers_.begin(i, bytes_of(i), o.made);
    if (options_.second_place)
      options_.second_place.load(o.index, to, bytes_of(i));
    else
      exec_.copy_from_host(to, copy_at(o), bytes_of(i));
  }
  void* copy_at(operation const& o) const { return static_cast<char*>(second_.data()) + o.copy; }

  E exec_;
  checkpoint::chain chain_;
  checkpoint::detail::program program_;
  checkpoint::options options_;
  buffer arena_;
  buffer second_;
  checkpoint::detail::buffers buffers_;
  owner<checkpoint::detail::random_states> random_;
  void const* input_ = nullptr;
  checkpoint::noise_seed noise_;
  bool turned_ = false;
};

}  // namespace memfit
