// What a run saves and goes on from, in one file: weights, optimizer, scale and sums, and its step.
// Used by the trainer. The choice of windows and dropout depend on seed and step alone, so that
// these are all there is of random state.
#pragma once

#include <memfit/state_file/part.hpp>

#include <filesystem>
#include <memory>
#include <vector>

#include "weights.hpp"

namespace gpt2 {

using state_parts = std::vector<std::unique_ptr<memfit::state_part>>;

// The weights by the names of the published checkpoints, in their own shapes.
template <class T>
std::unique_ptr<memfit::state_part> states_of(weights<T>& w);

// The steps taken, and the seed, which has to be that of the options.
std::unique_ptr<memfit::state_part> states_of(index& step, index seed);

// Throw user_error, which names the option.
void require_writable(const char* option, const std::filesystem::path& path,
                      const std::vector<std::filesystem::path>& inputs);
void save(const std::filesystem::path& path, const state_parts& parts);
void resume(const std::filesystem::path& path, const state_parts& parts);

}  // namespace gpt2
