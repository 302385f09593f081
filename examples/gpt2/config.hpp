// The sizes of a GPT-2 and of one batch, and what it reads.
// Used by every part of the GPT-2 example that allocates or walks the network.
#pragma once

#include <cstdint>
#include <optional>

#include "tensor.hpp"

namespace gpt2 {

using token = std::uint16_t;

// Of the published models, whose last token is between texts.
inline constexpr index gpt2_vocabulary = 50257, end_of_text = gpt2_vocabulary - 1;

// Far above any model, far below where products of sizes leave 64 bits.
inline constexpr index largest_size = index{1} << 20;
// That tokens can number.
inline constexpr index largest_vocabulary = index{1} << 16;

struct config {
  index layers = 0, heads = 0, channels = 0, context = 0;
  index vocabulary = 256;

  [[nodiscard]] index head_channels() const { return channels / heads; }
};

// Those sizes that someone has named.
struct some_sizes {
  std::optional<index> layers, heads, channels, context, vocabulary;

  // The others are as in `rest`.
  [[nodiscard]] config over(const config& rest) const {
    return {.layers = layers.value_or(rest.layers),
            .heads = heads.value_or(rest.heads),
            .channels = channels.value_or(rest.channels),
            .context = context.value_or(rest.context),
            .vocabulary = vocabulary.value_or(rest.vocabulary)};
  }
};

inline some_sizes all_of(const config& c) {
  return {c.layers, c.heads, c.channels, c.context, c.vocabulary};
}

struct extent {
  index batch = 0, seq = 0;

  [[nodiscard]] index rows() const { return batch * seq; }
};

}  // namespace gpt2
