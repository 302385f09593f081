#include "hugging_face_config.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "user_error.hpp"

namespace gpt2 {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

[[noreturn]] void refuse(const fs::path& file, const std::string& reason) {
  throw user_error("'" + file.string() + "': " + reason);
}

std::optional<index> size_at(const fs::path& file, const ordered_json& from, const char* key) {
  auto const found = from.find(key);
  if (found == from.end() || found->is_null()) return std::nullopt;
  if (!found->is_number_integer())
    refuse(file, std::string{key} + " is " + found->dump() + ", no whole number");
  return found->get<index>();
}

// What this program computes, where it could be something else.
const std::array<std::pair<const char*, ordered_json>, 7>& computed() {
  static const std::array<std::pair<const char*, ordered_json>, 7> all{
      {{"model_type", "gpt2"},
       {"activation_function", "gelu_new"},
       {"layer_norm_epsilon", 1e-5},
       {"scale_attn_weights", true},
       {"scale_attn_by_inverse_layer_idx", false},
       {"add_cross_attention", false},
       {"tie_word_embeddings", true}}};
  return all;
}

void require_computed(const fs::path& file, const ordered_json& from) {
  for (auto const& [key, expected] : computed())
    if (auto const found = from.find(key);
        found != from.end() && !found->is_null() && *found != expected)
      refuse(file, std::string{key} + " is " + found->dump() + ", and this program computes " +
                       expected.dump());
}

ordered_json description_of(const config& sizes) {
  ordered_json d{{"architectures", {"GPT2LMHeadModel"}}};
  for (auto const& [key, value] : computed()) d[key] = value;
  d["n_layer"] = sizes.layers;
  d["n_head"] = sizes.heads;
  d["n_embd"] = sizes.channels;
  d["n_positions"] = sizes.context;
  d["n_ctx"] = sizes.context;
  d["vocab_size"] = sizes.vocabulary;
  bool const published = sizes.vocabulary == gpt2_vocabulary;
  auto const between_texts = published ? ordered_json(end_of_text) : ordered_json(nullptr);
  for (auto const* key : {"bos_token_id", "eos_token_id"}) d[key] = between_texts;
  return d;
}

}  // namespace

fs::path config_beside(const fs::path& weights) {
  return fs::path{weights}.replace_filename("config.json");
}

some_sizes read_config(const fs::path& file) {
  if (!fs::exists(file)) return {};
  std::ifstream in{file};
  auto const all = ordered_json::parse(in, nullptr, false);
  if (!all.is_object()) refuse(file, "it cannot be read as a JSON object");
  require_computed(file, all);
  auto const size = [&](const char* key) { return size_at(file, all, key); };
  return {.layers = size("n_layer"),
          .heads = size("n_head"),
          .channels = size("n_embd"),
          .context = size("n_positions"),
          .vocabulary = size("vocab_size")};
}

void write_config(const fs::path& file, const config& sizes) {
  fs::path const written{file.string() + ".tmp-" + std::to_string(::getpid())};
  std::ofstream out{written};
  out << description_of(sizes).dump(2) << '\n';
  out.close();
  std::error_code failed;
  if (out) fs::rename(written, file, failed);
  if (out && !failed) return;
  std::error_code none;
  fs::remove(written, none);
  refuse(file, "it cannot be written");
}

}  // namespace gpt2
