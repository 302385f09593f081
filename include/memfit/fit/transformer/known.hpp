// Published models by name.
// Used by programs that are told a model by its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memfit/core/error.hpp"
#include "memfit/fit/transformer/shape.hpp"

namespace memfit::fit {

namespace detail {

struct stack {
  std::int64_t layers, heads, channels;
};
inline constexpr stack base{12, 12, 768}, large{24, 16, 1024};

inline transformer_shape known(std::string name, family f, stack s, std::int64_t vocabulary,
                               std::int64_t context) {
  transformer_shape made{.name = std::move(name), .family = f};
  made.layers = s.layers;
  made.heads = s.heads;
  made.channels = s.channels;
  made.vocabulary = vocabulary;
  made.context = context;
  return made;
}
inline transformer_shape known_gpt2(std::string name, stack s) {
  return known(std::move(name), family::gpt2, s, 50257, 1024);
}
/// Of bytes.
inline transformer_shape known_small(std::string name, stack s, std::int64_t context) {
  return known(std::move(name), family::gpt2, s, std::int64_t{1} << 8, context);
}
inline transformer_shape known_bert(std::string name, stack s) {
  auto made = known(std::move(name), family::bert, s, 30522, 512);
  made.token_types = 2;
  return made;
}
inline transformer_shape known_roberta(std::string name, stack s, std::int64_t vocabulary) {
  auto made = known(std::move(name), family::bert, s, vocabulary, 514);
  made.token_types = 1;
  return made;
}
inline transformer_shape known_llama(std::string name, stack s, std::int64_t vocabulary,
                                     std::int64_t context, std::int64_t wide,
                                     std::int64_t kv_heads) {
  auto made = known(std::move(name), family::llama, s, vocabulary, context);
  made.wide = wide;
  made.kv_heads = kv_heads;
  made.tied_head = false;
  return made;
}

}  // namespace detail

/// tiny and small are those of gpt2_train, with a vocabulary of bytes; the others are published.
inline std::vector<transformer_shape> known_models() {
  using namespace detail;
  return {known_small("tiny", {2, 4, 128}, 128),
          known_small("small", {4, 4, 1 << 8}, 1 << 8),
          known_gpt2("gpt2", base),
          known_gpt2("gpt2-medium", large),
          known_gpt2("gpt2-large", {36, 20, 1280}),
          known_gpt2("gpt2-xl", {48, 25, 1600}),
          known_bert("bert-base", base),
          known_bert("bert-large", large),
          known_roberta("roberta-base", base, 50265),
          known_roberta("roberta-large", large, 50265),
          known_roberta("xlm-roberta-base", base, 250002),
          known_roberta("xlm-roberta-large", large, 250002),
          known_llama("tinyllama-1.1b", {22, 32, 2048}, 32000, 2048, 5632, 4),
          known_llama("llama-2-7b", {32, 32, 4096}, 32000, 4096, 11008, 32),
          known_llama("llama-2-13b", {40, 40, 5120}, 32000, 4096, 13824, 40),
          known_llama("llama-3-8b", {32, 32, 4096}, 128256, 8192, 14336, 8)};
}

/// Throws argument_error, which lists the known ones, for any other name.
inline transformer_shape known_model(std::string_view name) {
  std::string names;
  for (auto const& s : known_models()) {
    if (s.name == name) return s;
    names += (names.empty() ? "" : ", ") + s.name;
  }
  throw argument_error("memfit::fit::known_model: '" + std::string(name) + "' is none of " + names);
}

}  // namespace memfit::fit
