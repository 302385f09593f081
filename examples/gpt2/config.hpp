// The sizes of a GPT-2 and of one batch, and what it reads.
// Used by every part of the GPT-2 example that allocates or walks the network.
#pragma once

#include <cstdint>

#include "tensor.hpp"

namespace gpt2 {

using token = std::uint8_t;

struct config {
  index layers = 0, heads = 0, channels = 0, context = 0;
  index vocabulary = 256;

  [[nodiscard]] index head_channels() const { return channels / heads; }
};

struct extent {
  index batch = 0, seq = 0;

  [[nodiscard]] index rows() const { return batch * seq; }
};

}  // namespace gpt2
