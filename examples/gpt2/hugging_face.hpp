// The files that Hugging Face's transformers keeps a GPT-2 in: model.safetensors, and config.json
// beside it. Used by the options, which take sizes from them, and by the trainer, which begins with
// their weights and leaves its own. Everything throws user_error, which names the file.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "weights.hpp"

namespace gpt2 {

// The sizes that the shapes in a file tell; heads by config.json, by `asked`, or of 64 channels
// each. Looks at the name and shape of every tensor, which must be those of a GPT-2, and at what
// else is said of the sizes, which must agree.
config sizes_in(const std::filesystem::path& file, const some_sizes& asked);

// Values of fp32, fp16 or bf16, rounded to T once. The file is one that sizes_in has looked at.
template <class T>
void read_weights(const std::filesystem::path& file, weights<T>& into);

// Whether `write_weights` can write there: not over one of `inputs`, nor beside the config.json of
// a network of other sizes.
void require_place_for_weights(const std::filesystem::path& file, const config& sizes,
                               const std::vector<std::filesystem::path>& inputs);

// So many values of one of `weights::all`, from this element on.
using values_of = std::function<std::vector<float>(std::size_t tensor, index first, index count)>;

// Everything in fp32, with config.json where there is none. Each file is whole or as it was.
template <class T>
void write_weights(const std::filesystem::path& file, const config& sizes, weights<T>& of,
                   const values_of& values);

}  // namespace gpt2
