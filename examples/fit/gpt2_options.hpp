// The options of gpt2_train that a plan stands for.
// Used by memfit_fit, which prints them, and by gpt2_train, which takes them from itself.
#pragma once

#include <memfit/fit/plan/types.hpp>

#include <optional>
#include <string>
#include <vector>

namespace advice {

using words = std::vector<std::string>;

// Empty where gpt2_train does not have the combination.
std::optional<words> gpt2_storage_options(memfit::fit::column_cost const& column,
                                          memfit::fit::state_cost const& states);

// All that the plan decides: --batch, --seq, storage, micro-batches, release and checkpoints, of
// which gpt2_train makes a schedule of its own within the plan's bytes. Not the model, nor by how
// much gradients are clipped. Empty where gpt2_train does not have the combination.
std::optional<words> gpt2_options_of(memfit::fit::plan const& p);

}  // namespace advice
