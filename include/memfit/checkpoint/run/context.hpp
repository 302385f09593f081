// What a stage is told beside its tensors, and what a model of stages must offer.
// Used by users' models, and by whoever runs them: the runner and the profiler.
#pragma once

#include <cstdint>

#include "memfit/checkpoint/run/carver.hpp"
#include "memfit/core/random.hpp"

namespace memfit::checkpoint {

/// Where the noise of one training step comes from: another seed or step, other bits.
struct noise_seed {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
};

/// The key of a stage's noise: of (seed, step, stage) alone, so a replay draws what the first
/// forward drew. No tensor's key in an optimizer of the same seed.
inline noise_key stage_noise(noise_seed const& of, std::int64_t stage) {
  return make_noise_key(of.seed, of.step, -1 - stage);
}

/// What a stage is told in its forward and in its backward. Storage is the executor's; `saved` and
/// `scratch` start at the front in every call.
struct context {
  /// No variant: a forward whose backward does not come next.
  static constexpr int saves_nothing = -1;

  bool replay = false;          ///< a forward that has been done before in this training step
  bool wants_output = false;    ///< of a forward: whether the output is read by anyone
  int variant = saves_nothing;  ///< index into the stage's variants
  noise_key noise;              ///< the same in every forward of the stage in this training step
  carver saved;                 ///< written by the forward of a variant, read by its backward
  carver scratch;               ///< in use during this call alone

  /// Whether a backward reads what this forward saves; in a backward, true.
  bool saves() const { return variant != saves_nothing; }
};

/// A model has `forward(stage, in, out, context)`: from activation `stage` at `in` (const void*) it
/// makes the next one at `out` (void*), null where nobody reads it or it has no bytes.
template <class M>
concept has_stage_forward = requires(M& model, std::int64_t stage, void const* in, void* out,
                                     context& c) {
  model.forward(stage, in, out, c);
};

/// A model has `backward(stage, in, out, out_gradient, in_gradient, context)`. It reads the stage's
/// input, its output (null unless the chain says reads_output) and the gradient of its output,
/// which it may change in place; writes the gradient of its input, which may be null for stage 0;
/// and adds (+=) to the gradients of its parameters.
template <class M>
concept has_stage_backward = requires(M& model, std::int64_t stage, void const* in, void const* out,
                                      void* out_gradient, void* in_gradient, context& c) {
  model.backward(stage, in, out, out_gradient, in_gradient, c);
};

namespace detail {

template <class M>
constexpr void require_forward() {
  static_assert(has_stage_forward<M>,
                "memfit::checkpointed: the model needs forward(std::int64_t stage, void const* in, "
                "void* out, memfit::checkpoint::context&)");
}

template <class M>
constexpr void require_backward() {
  static_assert(has_stage_backward<M>,
                "memfit::checkpointed: the model needs backward(std::int64_t stage, void const* "
                "in, void const* out, void* out_gradient, void* in_gradient, "
                "memfit::checkpoint::context&)");
}

}  // namespace detail

}  // namespace memfit::checkpoint
