// A model as the estimate sees it: stages in order, their parameter tensors, and what a batch
// keeps. Used by the estimate and the planner; transformer.hpp makes it from the usual numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"

namespace memfit::fit {

/// One parameter tensor; gradients and moments have the same count.
struct parameter {
  std::string name;
  std::int64_t count = 0;
  bool divides = true;  ///< among tensor-parallel ranks; else each of them has it whole
};

/// A stage of the chain, whose parameters its backward completes the gradients of. Stages may name
/// the same tensor (a head tied to the embedding): it counts once, with the first.
struct stage {
  std::string name;
  std::vector<parameter> parameters;
};

/// One pass over the network: `batch` windows of `seq` tokens, elements of so many bytes.
struct pass {
  std::int64_t batch = 1;
  std::int64_t seq = 1;
  std::int64_t element_bytes = 4;
  std::int64_t tensor_ranks = 1;  ///< that divide each stage; the chain is that of one of them
};

/// What a device does in a second, roughly.
struct rates {
  double flops = 1e12;       ///< of matrix products, at the precision of the pass
  double bytes = 1e11;       ///< to and from its memory
  double link_bytes = 1e10;  ///< to and from the host's memory
};

/// Parameters by stage, and the chain of activations of a pass, with times in nanoseconds.
struct model {
  std::string name;
  std::vector<stage> stages;
  std::function<checkpoint::chain(pass const&, rates const&)> chain;
  /// Bytes that a run of such passes takes besides: tokens, buffers of kernels.
  std::function<std::int64_t(pass const&)> workspace = {};
};

}  // namespace memfit::fit
