// What the tokens of a vocabulary stand for, as far as text is made of bytes.
// Used by the data, which turn bytes into tokens, and by sampling, which turns them back.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "config.hpp"

namespace gpt2 {

// The first tokens of every vocabulary are the bytes, of one with fewer than 256 tokens some of
// them: in their order, but in GPT-2's own first those that Latin-1 shows.
class byte_tokens {
 public:
  static constexpr std::size_t count = 256;

  explicit byte_tokens(index vocabulary) {
    std::iota(bytes_.begin(), bytes_.end(), std::uint8_t{0});
    if (vocabulary == gpt2_vocabulary)
      std::stable_partition(bytes_.begin(), bytes_.end(), is_shown);
    for (std::size_t t = 0; t < bytes_.size(); ++t) tokens_[bytes_[t]] = static_cast<token>(t);
  }

  [[nodiscard]] token of(std::uint8_t byte) const { return tokens_[byte]; }
  // Of a token below 256.
  [[nodiscard]] std::uint8_t byte_of(token t) const { return bytes_[t]; }

 private:
  static bool is_shown(std::uint8_t byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
  }

  std::array<std::uint8_t, count> bytes_{};
  std::array<token, count> tokens_{};
};

}  // namespace gpt2
