// Text as bytes: reading it, holding a part out for validation, cutting batches from it.
// Used by the trainer of the GPT-2 example.
#pragma once

#include <filesystem>
#include <vector>

#include "config.hpp"

namespace gpt2 {

// The last tenth of every file is held out. Each file counts once, however many links lead to it.
struct corpus {
  std::vector<std::filesystem::path> files;
  std::vector<token> train, validation;
};

// Files, and folders with everything below them that is not hidden, in the order of their paths.
// Throws user_error where something cannot be read, or where either part is shorter than one window
// of `seq` tokens and its successor.
corpus load(const std::vector<std::filesystem::path>& paths, index seq);

// The licence texts of a Debian system where they exist, else this project's sources.
std::vector<std::filesystem::path> default_data();

// Windows of text and, for each token, the one that follows it.
struct batch {
  extent shape;
  std::vector<token> inputs, targets;

  [[nodiscard]] index bytes() const {
    return static_cast<index>(inputs.capacity() + targets.capacity());
  }
};

// Random windows that depend on the seed and the step alone.
void draw(const std::vector<token>& text, extent shape, index seed, index step, batch& to);

// Batches that cover the text evenly with at most `limit` tokens; the last one may be smaller.
std::vector<batch> cover(const std::vector<token>& text, extent shape, index limit);

}  // namespace gpt2
