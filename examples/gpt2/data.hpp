// Text as its files hold it: reading it, holding a part out for validation, cutting batches of
// tokens from it.
// Used by the trainer of the GPT-2 example.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "choices.hpp"
#include "vocabulary.hpp"

namespace gpt2 {

// What the files hold, bytes of text or numbers of 16 bits, little endian, and what it is to be.
struct token_format {
  token_choice held;
  index vocabulary;

  [[nodiscard]] index bytes_each() const { return held == token_choice::bytes ? 1 : 2; }
  [[nodiscard]] std::string_view unit() const {
    return held == token_choice::bytes ? "bytes" : "tokens";
  }
};

// A text in the bytes of its files, which become tokens as they are asked for.
class token_text {
 public:
  explicit token_text(const token_format& format, std::vector<std::uint8_t> bytes = {})
      : bytes_each_{format.bytes_each()}, of_bytes_{format.vocabulary}, bytes_{std::move(bytes)} {}

  [[nodiscard]] index size() const { return std::ssize(bytes_) / bytes_each_; }
  [[nodiscard]] index bytes() const { return static_cast<index>(bytes_.capacity()); }
  // Tokens `first` to `last` of another of the same format.
  void append(const token_text& other, index first, index last) {
    auto const from = other.bytes_.begin();
    bytes_.insert(bytes_.end(), from + first * bytes_each_, from + last * bytes_each_);
  }
  [[nodiscard]] token operator[](index i) const {
    auto const* const at = bytes_.data() + i * bytes_each_;
    return bytes_each_ == 1 ? of_bytes_.of(*at) : static_cast<token>(at[0] | at[1] << 8);
  }

 private:
  index bytes_each_;
  byte_tokens of_bytes_;
  std::vector<std::uint8_t> bytes_;
};

// The last tenth of every file is held out. Each file counts once, however many links lead to it.
struct corpus {
  std::vector<std::filesystem::path> files;
  token_text train, validation;

  [[nodiscard]] index bytes() const { return train.bytes() + validation.bytes(); }
};

// Files, and folders with everything below them that is not hidden, in the order of their paths.
// Throws user_error where something cannot be read, where a token is beyond the vocabulary, and
// where either part is shorter than one window of `seq` tokens and its successor.
corpus load(const std::vector<std::filesystem::path>& paths, const token_format& format, index seq);

// The licence texts of a Debian system where they exist, else this project's sources.
std::vector<std::filesystem::path> default_data();

// Windows of text and, for each token, the one that follows it.
struct batch {
  extent shape;
  std::vector<token> inputs, targets;

  [[nodiscard]] index bytes() const {
    return static_cast<index>((inputs.capacity() + targets.capacity()) * sizeof(token));
  }
};

// Random windows that depend on the seed and the step alone.
void draw(const token_text& text, extent shape, index seed, index step, batch& to);

// Batches that cover the text evenly with at most `limit` tokens; the last one may be smaller.
std::vector<batch> cover(const token_text& text, extent shape, index limit);

}  // namespace gpt2
