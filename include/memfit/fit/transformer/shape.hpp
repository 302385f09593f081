// The usual numbers of a transformer, and what is asked of them.
// Used by the model that is made of them, and by whoever reads them from a file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "memfit/core/error.hpp"

namespace memfit::fit {

enum class family {
  gpt2,  ///< norms before layers, learned positions, biases, head over the vocabulary
  bert,  ///< norms after layers and after the embedding, token types; the head is the pooler
  llama  ///< norms without mean and bias, rotary positions, no biases, gated feed-forward
};

/// RoBERTa and XLM-RoBERTa are of the family of BERT.
struct transformer_shape {
  std::string name;
  fit::family family = fit::family::gpt2;
  std::int64_t layers = 0, heads = 0, channels = 0, vocabulary = 0;
  std::int64_t context = 0;      ///< rows of the table of positions; llama has no table
  std::int64_t wide = 0;         ///< inner channels of the feed-forward; 0: 4 x channels
  std::int64_t kv_heads = 0;     ///< heads of keys and values; 0: as many as heads
  std::int64_t token_types = 0;  ///< of bert: rows of their table
  bool tied_head = true;         ///< of gpt2 and llama: the head is the embedding's table

  std::int64_t wide_channels() const { return wide != 0 ? wide : 4 * channels; }
  std::int64_t kv_channels() const { return channels / heads * (kv_heads != 0 ? kv_heads : heads); }
};

namespace detail {

[[noreturn]] inline void refuse(transformer_shape const& s, std::string const& why) {
  throw argument_error("memfit::fit::transformer: model '" + s.name + "': " + why);
}

inline void require_between(transformer_shape const& s, char const* what, std::int64_t value,
                            std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    refuse(s, std::string(what) + " is " + std::to_string(value) + ", must be at least " +
                  std::to_string(least) + " and at most " + std::to_string(most));
}

/// Elements or bytes of a tensor. Throws argument_error where they are so many that the sums over a
/// stage might leave 64 bits.
inline std::int64_t product(transformer_shape const& s,
                            std::initializer_list<std::int64_t> factors) {
  constexpr auto most = INT64_MAX >> 8;
  std::int64_t all = 1;
  for (auto const f : factors)
    if (__builtin_mul_overflow(all, f, &all) || all > most)
      refuse(s, "a tensor of more than " + std::to_string(most) + " bytes");
  return all;
}

inline void require_shape(transformer_shape const& s) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  require_between(s, "layers", s.layers, 1, std::int64_t{1} << 16);
  require_between(s, "heads", s.heads, 1, most);
  require_between(s, "channels", s.channels, 1, most);
  require_between(s, "vocabulary", s.vocabulary, 1, most);
  require_between(s, "context", s.context, 1, most);
  require_between(s, "wide", s.wide, 0, most);
  require_between(s, "kv_heads", s.kv_heads, 0, s.heads);
  require_between(s, "token_types", s.token_types, 0, most);
  if (s.channels % s.heads != 0)
    refuse(s, std::to_string(s.channels) + " channels do not divide into " +
                  std::to_string(s.heads) + " heads");
  if (s.kv_heads != 0 && s.heads % s.kv_heads != 0)
    refuse(s, std::to_string(s.heads) + " heads do not divide into " + std::to_string(s.kv_heads) +
                  " kv_heads");
}

}  // namespace detail

}  // namespace memfit::fit
