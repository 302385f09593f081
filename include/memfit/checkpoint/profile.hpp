// Measures the stages of a user's model: what a planner needs to know of them.
// Used before training, so that budgets are met with real bytes and real times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/refuse.hpp"
#include "memfit/checkpoint/run/carver.hpp"
#include "memfit/checkpoint/run/context.hpp"
#include "memfit/core/error.hpp"
#include "memfit/core/memory.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit::checkpoint {

/// How a model is measured.
struct profile_options {
  int repetitions = 5;             ///< of every call; their median counts
  void* input_gradient = nullptr;  ///< where stage 0 writes that of the input; null: it has none
  noise_seed noise = {};
};

namespace detail {

template <executor E, class Model>
class profiler {
 public:
  profiler(E const& exec, Model& model, chain stages, void const* input,
           profile_options const& options)
      : exec_(exec),
        model_(model),
        stages_(std::move(stages)),
        options_(options),
        in_(input),
        probe_(zeros(alignment)) {}

  chain finished() && {
    for (std::size_t i = 0; i < stages_.size(); ++i) measure(i);
    return std::move(stages_);
  }

 private:
  using nanoseconds = std::vector<std::int64_t>;
  struct try_again {};
  struct cost {
    std::int64_t time = 0, saved = 0, scratch = 0;
  };

  void measure(std::size_t i) {
    auto& s = stages_[i];
    auto out = zeros(s.output);
    out_ = out.data();
    out_gradient_ = zeros(s.gradient);
    auto const of_pass = until_it_fits([&] { return forward(i, context::saves_nothing, true); });
    s.forward = of_pass.time;
    s.scratch = of_pass.scratch;
    for (std::size_t v = 0; v < s.variants.size(); ++v) {
      auto& variant = s.variants[v];
      until_it_fits([&] { return variant = of_variant(i, static_cast<int>(v)), cost{}; });
    }
    in_gradient_ = std::move(out_gradient_);
    in_memory_ = std::move(out);
    in_ = in_memory_.data();
  }

  variant of_variant(std::size_t i, int v) {
    auto const with_output = forward(i, v, true);
    auto const without = forward(i, v, false);
    auto const back = backward(i, v);
    return {.saved = (std::max)({with_output.saved, without.saved, back.saved}),
            .forward = with_output.time,
            .replay = without.time,
            .backward = back.time,
            .forward_scratch = (std::max)(with_output.scratch, without.scratch),
            .backward_scratch = back.scratch};
  }

  cost forward(std::size_t i, int v, bool wants_output) {
    return repeated([&] { return forward_once(i, v, wants_output); });
  }
  /// A backward may overwrite what was saved and the gradient that it reads: both are made anew.
  cost backward(std::size_t i, int v) {
    auto const& s = stages_[i];
    void* const in_gradient = i == 0 ? options_.input_gradient : in_gradient_.data();
    return repeated([&] {
      forward_once(i, v, true);
      exec_.fill(out_gradient_.data(), 0, out_gradient_.bytes());
      auto c = context_of(i, v);
      return timed(c, [&] {
        model_.backward(static_cast<std::int64_t>(i), in_, s.reads_output ? out_ : nullptr,
                        out_gradient_.data(), in_gradient, c);
      });
    });
  }

  cost forward_once(std::size_t i, int v, bool wants_output) {
    auto c = context_of(i, v);
    c.replay = true;
    c.wants_output = wants_output;
    void* const out = wants_output ? out_ : nullptr;
    return timed(c, [&] { model_.forward(static_cast<std::int64_t>(i), in_, out, c); });
  }

  context context_of(std::size_t i, int v) const {
    auto const stage = static_cast<std::int64_t>(i);
    auto const saved = v == context::saves_nothing ? 0 : saved_.bytes();
    return {.variant = v,
            .noise = stage_noise(options_.noise, stage),
            .saved = {saved_.data(), saved, "saved", stage},
            .scratch = {scratch_.data(), scratch_.bytes(), "scratch", stage}};
  }

  /// One call and its waiting. Where it asked for more storage than there was, there is more now.
  template <class Call>
  cost timed(context const& c, Call const& call) {
    wait();
    auto const begin = std::chrono::steady_clock::now();
    try {
      call();
    } catch (argument_error const&) {
      bool const grows_saved = c.saves() && grow(saved_, c.saved.refused_bytes());
      if (grow(scratch_, c.scratch.refused_bytes()) || grows_saved) throw try_again{};
      throw;
    }
    wait();
    auto const time = std::chrono::steady_clock::now() - begin;
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(), c.saved.bytes(),
            c.scratch.bytes()};
  }

  /// The median time and the most bytes.
  template <class Once>
  cost repeated(Once const& once) const {
    cost all;
    nanoseconds times;
    for (int i = 0; i < options_.repetitions; ++i) {
      auto const one = once();
      times.push_back(one.time);
      all.saved = (std::max)(all.saved, one.saved);
      all.scratch = (std::max)(all.scratch, one.scratch);
    }
    auto const middle = times.begin() + std::ssize(times) / 2;
    std::nth_element(times.begin(), middle, times.end());
    all.time = *middle;
    return all;
  }

  template <class Work>
  static cost until_it_fits(Work const& work) {
    for (;;) {
      try {
        return work();
      } catch (try_again const&) {
      }
    }
  }

  bool grow(buffer& b, std::int64_t wanted) const {
    if (wanted <= b.bytes()) return false;
    b = exec_.allocate(wanted);
    return true;
  }
  buffer zeros(std::int64_t bytes) const {
    auto b = exec_.allocate(bytes);
    exec_.fill(b.data(), 0, bytes);
    return b;
  }
  void wait() const {
    char byte = 0;
    exec_.copy_to_host(&byte, probe_.data(), 1);
  }

  E const& exec_;
  Model& model_;
  chain stages_;
  profile_options options_;
  void const* in_;
  void* out_ = nullptr;
  buffer in_memory_, in_gradient_, out_gradient_, saved_, scratch_, probe_;
};

}  // namespace detail

/// The chain of a model, measured: times in nanoseconds, each call by itself until the executor is
/// done with it, and bytes as the stages take them from their carvers.
///
/// `stages` says what is known: bytes of outputs and gradients, reads_output and the number of
/// variants; the rest is written over. Runs every stage in order on `input`, in each variant
/// several times, with the replay flag set, so that nothing happens that happens once per step.
/// Memory: that of the largest stage, its input and two gradients, grown as stages ask for more,
/// which calls them again. The gradient of every output is zero; gradients that the user keeps are
/// what they are. Whatever the stages' backwards make of that is added to the gradients of the
/// parameters, and a random generator of the user's moves on. Waits. Throws argument_error for
/// repetitions below 1 or bytes below 0, memory_error where a stage does not fit by itself, and
/// what the stages throw.
template <executor E, class Model>
chain profile(E const& exec, Model&& model, chain stages, void const* input,
              profile_options const& options = {}) {
  using model_type = std::remove_reference_t<Model>;
  detail::require_forward<model_type>();
  detail::require_backward<model_type>();
  detail::require_at_least("profile", "repetitions", options.repetitions, 1);
  detail::require_chain("profile", stages);
  return detail::profiler<E, model_type>(exec, model, std::move(stages), input, options).finished();
}

}  // namespace memfit::checkpoint
