#include "config_file.hpp"

#include <fstream>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "../gpt2/user_error.hpp"

namespace advice {

namespace fit = memfit::fit;

namespace {

class config_reader {
 public:
  explicit config_reader(std::filesystem::path const& path) : path_(path) {
    std::ifstream file{path};
    if (!file) fail("cannot be read");
    config_ = nlohmann::json::parse(file, nullptr, false);
    if (!config_.is_object()) fail("is no JSON object");
  }

  fit::transformer_shape shape() const {
    auto const type = text("model_type");
    fit::transformer_shape s;
    if (type == "gpt2")
      s = gpt2();
    else if (type == "bert" || type == "roberta" || type == "xlm-roberta")
      s = bert();
    else if (type == "llama")
      s = llama();
    else
      fail("has model_type '" + type + "', which is none of " + config_types);
    s.name = path_.string();
    return s;
  }

 private:
  [[noreturn]] void fail(std::string const& why) const {
    throw gpt2::user_error("--config " + path_.string() + ": " + why);
  }

  std::string text(char const* key) const {
    auto const at = config_.find(key);
    if (at == config_.end() || !at->is_string()) fail(std::string{"has no text "} + key);
    return at->get<std::string>();
  }

  std::int64_t number(char const* key, std::optional<std::int64_t> without = {}) const {
    auto const at = config_.find(key);
    if (without && (at == config_.end() || at->is_null())) return *without;
    if (at == config_.end() || !at->is_number_integer())
      fail(std::string{"has no whole number "} + key);
    return at->get<std::int64_t>();
  }

  bool flag(char const* key, bool without) const {
    auto const at = config_.find(key);
    return at == config_.end() || !at->is_boolean() ? without : at->get<bool>();
  }

  fit::transformer_shape gpt2() const {
    fit::transformer_shape s;
    s.family = fit::family::gpt2;
    s.layers = number("n_layer");
    s.heads = number("n_head");
    s.channels = number("n_embd");
    s.vocabulary = number("vocab_size");
    s.context = number("n_positions");
    s.wide = number("n_inner", 0);
    s.tied_head = flag("tie_word_embeddings", true);
    return s;
  }

  fit::transformer_shape layers_of(fit::family family) const {
    fit::transformer_shape s;
    s.family = family;
    s.layers = number("num_hidden_layers");
    s.heads = number("num_attention_heads");
    s.channels = number("hidden_size");
    s.vocabulary = number("vocab_size");
    s.context = number("max_position_embeddings");
    s.wide = number("intermediate_size");
    return s;
  }

  fit::transformer_shape bert() const {
    auto s = layers_of(fit::family::bert);
    s.token_types = number("type_vocab_size");
    return s;
  }

  fit::transformer_shape llama() const {
    auto s = layers_of(fit::family::llama);
    s.kv_heads = number("num_key_value_heads", s.heads);
    s.tied_head = flag("tie_word_embeddings", false);
    for (char const* const more : {"attention_bias", "mlp_bias"})
      if (flag(more, false)) fail(std::string{"has "} + more + ", which memfit_fit does not count");
    if (s.heads > 0 && number("head_dim", s.channels / s.heads) != s.channels / s.heads)
      fail("has a head_dim that is not hidden_size / num_attention_heads");
    return s;
  }

  std::filesystem::path path_;
  nlohmann::json config_;
};

}  // namespace

fit::transformer_shape shape_in_file(std::filesystem::path const& path) {
  return config_reader{path}.shape();
}

}  // namespace advice
