// A training configuration: what is stored how, and which techniques are on.
// Used by the estimate, which says what it takes, and by the planner, which looks for one that
// fits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"

namespace memfit::fit {

/// Bytes of one moment of a tensor of `count` elements: the functions that the optimizer allocates
/// by.
struct moment_cost {
  std::string name;
  std::int64_t (*code_bytes)(std::int64_t count) = nullptr;
  std::int64_t (*scale_bytes)(std::int64_t count) = nullptr;
  std::int64_t (*exact_bytes)(std::int64_t count) = nullptr;  ///< of tensors that stay fp32
};

/// A rule with its moments in some format; memfit/cost.hpp makes it from the types.
struct state_cost {
  std::string rule, format;
  std::vector<moment_cost> moments;
  std::int64_t min_quantized = 4096;
  bool folds = true;  ///< the gradients of micro-batches into the moments; see gradient_release
  std::int64_t most_folded = INT64_MAX;  ///< micro-batches per step that the format bears
  /// What an optimizer of so many tensors takes besides.
  std::int64_t (*shared_bytes)(std::int64_t tensors) = nullptr;
};

/// How parameters are stored: what the model reads, and what is kept beside it.
struct column_cost {
  std::string name;
  std::int64_t element_bytes = 4;  ///< of parameters, activations and gradients
  std::int64_t kept_bytes = 0;     ///< per element
};

/// Where the gradients of several micro-batches meet.
enum class accumulation {
  none,   ///< one micro-batch per step
  fp32,   ///< sums of 4 bytes
  bf16,   ///< sums of 2 bytes, rounded at random
  folded  ///< in the moments (with gradient release)
};

/// Degrees of parallelism; the model is divided as evenly as its tensors allow.
struct parallelism {
  std::int64_t data = 1, tensor = 1, pipeline = 1;
  int zero_stage = 0;  ///< 1: states, 2: and gradients, 3: and parameters are divided by data
};

struct training {
  std::int64_t batch = 1;        ///< windows per step and data-parallel rank
  std::int64_t micro_batch = 1;  ///< windows per pass
  std::int64_t seq = 1;          ///< tokens per window
  column_cost column = {};
  state_cost states = {};
  fit::accumulation accumulation = fit::accumulation::none;
  bool gradient_release = false;  ///< a stage is stepped as soon as its gradient is complete
  bool clips = false;             ///< by the norm of all gradients, or of the last window's
  /// Which activations are kept; null: all of them.
  std::function<checkpoint::schedule(checkpoint::chain const&)> schedule = {};
  bool offloads_states = false;  ///< moments and what is kept live in the host's memory
  parallelism ranks = {};
};

/// Bytes of one rank, by category; each is at its own peak.
struct bytes {
  std::int64_t parameters = 0, kept = 0, gradients = 0, sums = 0;
  std::vector<std::int64_t> moments;  ///< codes of each slot
  std::int64_t scales = 0;
  std::int64_t activations = 0, workspace = 0, communication = 0;
  std::int64_t host = 0;  ///< in the host's memory instead, where something is offloaded

  std::int64_t states() const {
    std::int64_t sum = scales;
    for (auto const m : moments) sum += m;
    return sum;
  }
  /// On the device.
  std::int64_t total() const {
    return parameters + kept + gradients + sums + states() + activations + workspace +
           communication;
  }
};

}  // namespace memfit::fit
