// Bytes of a training configuration by category, before anything is allocated.
// Used by programs that ask whether a model fits, and by the planner.
#pragma once

#include <utility>

#include "memfit/fit/divide.hpp"
#include "memfit/fit/model.hpp"
#include "memfit/fit/rank.hpp"
#include "memfit/fit/require.hpp"
#include "memfit/fit/training.hpp"

namespace memfit::fit {

/// What a training run takes, on the rank that takes the most of its device; `speed` gives the
/// chain's times, which schedules may choose by. Exact are, as the optimizer and the accumulator
/// allocate them: parameters, kept, gradients, sums, moments, scales; activations are the peak of
/// the schedule.
///
/// - Gradients have the element of the parameters. With gradient_release each is there from the
///   backward of the last stage that names its tensor to that of the first: the largest stage's,
///   and where a head is tied to the embedding, that tensor's all the time.
/// - Sums are there where a step has several passes and accumulation is fp32 or bf16; gradients
///   stay beside them, released or not. Passes need not be equal.
/// - workspace is the model's own, the step counters and, for clips and sums, what global_norm
///   takes at most.
/// - offloads_states moves moments, scales and what is kept to the host; those of the largest stage
///   are under way (communication). A schedule's second place is the host's memory, too.
/// - Data-parallel ranks divide every tensor evenly, as ZeRO does (Rajbhandari et al. 2019,
///   arXiv 1910.02054), kept with the states; the largest part counts. Under way is the largest
///   stage's gradient from stage 2 on, and its parameters in stage 3; else sums over ranks are
///   made in place.
/// - Tensor-parallel ranks divide the tensors that say so (Shoeybi et al. 2019, arXiv 1909.08053),
///   and activations as the model's chain does.
/// - Pipeline ranks have runs of stages whose largest has as few parameters as can be; a tensor
///   that two of them name is on both. A rank holds as many passes as there are ranks from it on,
///   or as a step has (1F1B, Narayanan et al. 2021, arXiv 2104.04473), each with its input; an
///   activation and a gradient are under way on each border.
///
/// Throws argument_error that names what is out of range or does not fit together. Allocates only
/// on the way; takes as long as the schedule, or keep_all.
inline bytes estimate(model const& m, training const& t, rates const& speed = {}) {
  detail::require_model(m);
  detail::require_training(t, m);
  auto const chain = m.chain(detail::pass_of(t), speed);
  detail::require_chain_of(m, chain);
  bytes most;
  for (auto const& run : detail::runs_of(m, t.ranks.pipeline))
    if (auto of_rank = detail::rank_estimate(m, t, chain, run)();
        run.first == 0 || of_rank.total() > most.total())
      most = std::move(of_rank);
  return most;
}

}  // namespace memfit::fit
