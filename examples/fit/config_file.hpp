// The usual numbers of a transformer from a Hugging Face config.json.
// Used by memfit_fit.
#pragma once

#include <memfit/fit/transformer/shape.hpp>

#include <filesystem>

namespace advice {

inline constexpr const char* config_types = "gpt2, bert, roberta, xlm-roberta, llama";

// Throws gpt2::user_error, which names the file, where it cannot be read, is no such configuration
// or lacks a number.
memfit::fit::transformer_shape shape_in_file(std::filesystem::path const& path);

}  // namespace advice
