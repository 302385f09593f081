// A model as a planner sees it: a chain of stages with their bytes and times, no tensors.
// Used by every planner, by the runner and by whoever asks how much a model keeps.
#pragma once

#include <cstdint>
#include <vector>

namespace memfit::checkpoint {

/// One way to run the forward of a stage whose backward comes next: what it keeps, what it costs.
/// Times are in any one unit, bytes are those of one buffer each.
struct variant {
  std::int64_t saved = 0;             ///< kept from this forward until the stage's backward
  std::int64_t forward = 0;           ///< time of the forward with its output
  std::int64_t replay = 0;            ///< time of the forward that leaves its output out
  std::int64_t backward = 0;          ///< time of the backward, with all that it recomputes
  std::int64_t forward_scratch = 0;   ///< in use during the forward alone
  std::int64_t backward_scratch = 0;  ///< in use during the backward alone

  bool operator==(variant const&) const = default;
};

/// Stage i turns activation i into activation i + 1. Its backward reads activation i and what one
/// of its variants saved, turns the gradient of activation i + 1 into that of activation i, and
/// frees what was saved.
struct stage {
  std::int64_t output = 0;    ///< activation i + 1: what a checkpoint keeps
  std::int64_t gradient = 0;  ///< the gradient of activation i + 1; 0 where the user keeps it
  std::int64_t forward = 0;   ///< time of a forward that saves nothing
  std::int64_t scratch = 0;   ///< in use during that forward alone
  bool reads_output = false;  ///< its backward reads activation i + 1, too
  std::vector<variant> variants{variant{}};  ///< at least one; the first saves the most

  bool operator==(stage const&) const = default;
};

/// The stages in the order of the forward. Activation 0 is the user's: always there, never counted.
using chain = std::vector<stage>;

}  // namespace memfit::checkpoint
