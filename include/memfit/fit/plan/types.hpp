// What a planner is asked, and what it answers.
// Used by the planner and by whoever lists what a program offers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "memfit/fit/training.hpp"

namespace memfit::fit {

/// What must hold of the results, from least to most; who wants one takes those after it, too.
enum class precision {
  bits16,  ///< parameters of 16 bits, moments of less than 8
  bits24,  ///< parameters of 24 bits or more, moments of 8 or more, and what changes Adam little
  exact    ///< the results of fp32, but for the order of sums
};

/// A way to store something, and what it costs in precision beside fp32.
template <class Cost>
struct graded {
  Cost cost;
  fit::precision precision = precision::exact;
  double loss = 0;                      ///< by which share losses of training are let differ
  std::string effect = "same results";  ///< on the results, in words
};

using column_choice = graded<column_cost>;
using state_choice = graded<state_cost>;

/// Parameters and moments stored so: one optimizer type that the program has.
struct storage_choice {
  column_choice column;
  state_choice states;
};

/// The techniques that a program has built in.
struct offers {
  std::vector<storage_choice> storages;  ///< the first is what others are compared with
  bool fp32_sums = true;                 ///< of micro-batches
  bool bf16_sums = true;                 ///< of micro-batches, rounded at random
  bool kept_gradients = true;            ///< until the step: else only with gradient release
  bool gradient_release = true;
  bool folds = true;        ///< micro-batches into the moments, with gradient release
  bool checkpoints = true;  ///< by any schedule; else everything is kept
  /// The only schedule of activations, where there is one.
  std::function<checkpoint::schedule(checkpoint::chain const&)> schedule = {};
  bool offloads_states = false;
};

struct wanted {
  std::int64_t batch = 1;                        ///< windows per step
  std::int64_t micro_batch = 0;                  ///< the only one to plan with; 0: any
  std::int64_t seq = 1;                          ///< tokens per window
  fit::precision precision = precision::bits24;  ///< at least
  bool clips = false;                            ///< by the norm of all gradients
  std::int64_t bytes = 0;                        ///< to plan for; 0: those of the device
  offers offered = {};
};

/// How a schedule keeps activations.
enum class activations {
  all,         ///< until their backward
  selective,   ///< the least that a single forward of every stage can save
  checkpoints  ///< some, from which others are computed again
};

/// One thing that is switched on, beside the same plan without it.
struct technique {
  std::string name;
  std::int64_t saves = 0;  ///< bytes
  double seconds = 0;      ///< more per step; less where negative
  double loss = 0;         ///< by which share losses of training are let differ
  std::string effect;      ///< on the results, in words
};

/// A configuration with what it takes and costs.
struct plan {
  fit::training training;
  fit::activations kept = activations::all;
  fit::bytes bytes;
  double seconds = 0;  ///< per step, roughly: two digits
  fit::precision precision = precision::exact;
  double loss = 0;  ///< the techniques' together
  std::vector<technique> techniques;
};

struct plan_list {
  std::int64_t bytes = 0;       ///< planned for
  plan plain;                   ///< the first storage, whole batches, everything kept
  std::vector<plan> plans;      ///< that fit, the fastest first
  std::optional<plan> nearest;  ///< of the least bytes, where nothing fits
  std::int64_t missing = 0;     ///< for the nearest
};

}  // namespace memfit::fit
