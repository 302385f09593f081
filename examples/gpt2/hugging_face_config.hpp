// config.json, in which transformers describes a network. Used by hugging_face.
#pragma once

#include <filesystem>

#include "config.hpp"

namespace gpt2 {

// Beside a file of weights.
std::filesystem::path config_beside(const std::filesystem::path& weights);

// The sizes that it names; none where there is no such file. Throws user_error where it is none, or
// of a network that computes something else.
some_sizes read_config(const std::filesystem::path& file);

// Throws user_error; then there is no such file, or the one that there was.
void write_config(const std::filesystem::path& file, const config& sizes);

}  // namespace gpt2
