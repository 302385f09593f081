// The options of gpt2_train that a plan stands for.
// Used by memfit_fit, which prints them.
#pragma once

#include <memfit/fit/plan/types.hpp>

#include <optional>
#include <string>
#include <vector>

namespace advice {

using words = std::vector<std::string>;

// All that the plan decides: --batch, --seq, storage, micro-batches, release and checkpoints, of
// which gpt2_train makes a schedule of its own within the plan's bytes. Not the model, nor by how
// much gradients are clipped. Empty where gpt2_train does not have the combination.
std::optional<words> gpt2_options_of(memfit::fit::plan const& p);

}  // namespace advice
