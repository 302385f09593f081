// What a planner makes: the list of actions that a forward and backward pass consists of.
// Used by the runner, which executes it, and by whoever shows or checks it.
#pragma once

#include <cstdint>
#include <vector>

namespace memfit::checkpoint {

/// The things that can be done at one time. `stage` is named where it acts on a stage, `activation`
/// where on an activation; activation i is the input of stage i.
enum class act : std::uint8_t {
  pass,      ///< forward of a stage, saving nothing: reads activation i, makes activation i + 1
  run,       ///< forward of a stage, saving what a variant's backward reads; makes activation i + 1
             ///< only where `output` says so
  turn,      ///< the forward is over: the user reads the last activation and writes its gradient
  backward,  ///< backward of a stage in the variant it was run in; frees what it saved
  drop,      ///< frees an activation
  store,     ///< copies an activation to the second place; it stays where it is, too
  load,      ///< makes an activation from its copy in the second place; the copy stays
  discard    ///< frees the copy in the second place
};

struct action {
  act what = act::pass;
  std::int64_t index = 0;  ///< of the stage or of the activation
  int variant = 0;         ///< of a run
  bool output = true;      ///< of a run: whether activation i + 1 is made

  bool operator==(action const&) const = default;
};

/// Actions and what they take. Bytes and times are those of the chain it was planned for.
struct schedule {
  std::vector<action> actions;
  std::int64_t peak = 0;         ///< most bytes alive at a time, activation 0 aside
  std::int64_t second_peak = 0;  ///< most bytes in the second place at a time
  std::int64_t forwards = 0;     ///< passes and runs together
  std::int64_t time = 0;         ///< of all actions, transfers to the second place included

  bool operator==(schedule const&) const = default;
};

}  // namespace memfit::checkpoint
