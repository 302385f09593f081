// The parameter tensors of a transformer, by the names of the published checkpoints.
// Used by the model that is made of its shape.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memfit/fit/model.hpp"
#include "memfit/fit/transformer/shape.hpp"

namespace memfit::fit::detail {

/// What tensor-parallel ranks divide of a linear layer (Shoeybi et al. 2019, arXiv 1909.08053): its
/// outputs, with the bias; its inputs; or nothing.
enum class divided { outputs, inputs, nothing };

/// Collects the tensors of a stage, whose names begin alike.
class stage_tensors {
 public:
  stage_tensors(std::string stage, std::string prefix, bool biases)
      : made_{std::move(stage), {}}, prefix_(std::move(prefix)), biases_(biases) {}

  void table(std::string const& name, std::int64_t rows, std::int64_t channels, bool divides) {
    made_.parameters.push_back({prefix_ + name + ".weight", rows * channels, divides});
  }
  void linear(std::string const& name, std::int64_t inputs, std::int64_t outputs, divided how) {
    table(name, inputs, outputs, how != divided::nothing);
    bias(name, outputs, how == divided::outputs);
  }
  void norm(std::string const& name, std::int64_t channels) {
    table(name, 1, channels, false);
    bias(name, channels, false);
  }
  stage finished() && { return std::move(made_); }

 private:
  void bias(std::string const& name, std::int64_t count, bool divides) {
    if (biases_) made_.parameters.push_back({prefix_ + name + ".bias", count, divides});
  }

  stage made_;
  std::string prefix_;
  bool biases_;
};

inline stage gpt2_embedding(transformer_shape const& s) {
  return {"embedding",
          {{"wte", s.vocabulary * s.channels}, {"wpe", s.context * s.channels, false}}};
}
inline stage gpt2_block(transformer_shape const& s, std::string const& layer) {
  stage_tensors t("block " + layer, "h." + layer + ".", true);
  t.norm("ln_1", s.channels);
  t.linear("attn.c_attn", s.channels, s.channels + 2 * s.kv_channels(), divided::outputs);
  t.linear("attn.c_proj", s.channels, s.channels, divided::inputs);
  t.norm("ln_2", s.channels);
  t.linear("mlp.c_fc", s.channels, s.wide_channels(), divided::outputs);
  t.linear("mlp.c_proj", s.wide_channels(), s.channels, divided::inputs);
  return std::move(t).finished();
}
inline stage gpt2_head(transformer_shape const& s) {
  stage_tensors t("head", "", true);
  t.norm("ln_f", s.channels);
  auto made = std::move(t).finished();
  made.parameters.push_back({s.tied_head ? "wte" : "lm_head.weight", s.vocabulary * s.channels});
  return made;
}

inline stage bert_embedding(transformer_shape const& s) {
  stage_tensors t("embedding", "embeddings.", true);
  t.table("word_embeddings", s.vocabulary, s.channels, true);
  t.table("position_embeddings", s.context, s.channels, false);
  if (s.token_types > 0) t.table("token_type_embeddings", s.token_types, s.channels, false);
  t.norm("LayerNorm", s.channels);
  return std::move(t).finished();
}
inline stage bert_block(transformer_shape const& s, std::string const& layer) {
  stage_tensors t("block " + layer, "encoder.layer." + layer + ".", true);
  t.linear("attention.self.query", s.channels, s.channels, divided::outputs);
  t.linear("attention.self.key", s.channels, s.kv_channels(), divided::outputs);
  t.linear("attention.self.value", s.channels, s.kv_channels(), divided::outputs);
  t.linear("attention.output.dense", s.channels, s.channels, divided::inputs);
  t.norm("attention.output.LayerNorm", s.channels);
  t.linear("intermediate.dense", s.channels, s.wide_channels(), divided::outputs);
  t.linear("output.dense", s.wide_channels(), s.channels, divided::inputs);
  t.norm("output.LayerNorm", s.channels);
  return std::move(t).finished();
}
inline stage bert_head(transformer_shape const& s) {
  stage_tensors t("head", "pooler.", true);
  t.linear("dense", s.channels, s.channels, divided::nothing);
  return std::move(t).finished();
}

inline stage llama_embedding(transformer_shape const& s) {
  stage_tensors t("embedding", "model.", false);
  t.table("embed_tokens", s.vocabulary, s.channels, true);
  return std::move(t).finished();
}
inline stage llama_block(transformer_shape const& s, std::string const& layer) {
  stage_tensors t("block " + layer, "model.layers." + layer + ".", false);
  t.norm("input_layernorm", s.channels);
  t.linear("self_attn.q_proj", s.channels, s.channels, divided::outputs);
  t.linear("self_attn.k_proj", s.channels, s.kv_channels(), divided::outputs);
  t.linear("self_attn.v_proj", s.channels, s.kv_channels(), divided::outputs);
  t.linear("self_attn.o_proj", s.channels, s.channels, divided::inputs);
  t.norm("post_attention_layernorm", s.channels);
  t.linear("mlp.gate_proj", s.channels, s.wide_channels(), divided::outputs);
  t.linear("mlp.up_proj", s.channels, s.wide_channels(), divided::outputs);
  t.linear("mlp.down_proj", s.wide_channels(), s.channels, divided::inputs);
  return std::move(t).finished();
}
inline stage llama_head(transformer_shape const& s) {
  stage_tensors t("head", "", false);
  t.norm("model.norm", s.channels);
  t.table(s.tied_head ? "model.embed_tokens" : "lm_head", s.vocabulary, s.channels, true);
  return std::move(t).finished();
}

struct stages_of_family {
  stage (*embedding)(transformer_shape const&);
  stage (*block)(transformer_shape const&, std::string const& layer);
  stage (*head)(transformer_shape const&);
};
inline stages_of_family stages_of(family f) {
  switch (f) {
    case family::bert:
      return {bert_embedding, bert_block, bert_head};
    case family::llama:
      return {llama_embedding, llama_block, llama_head};
    default:
      return {gpt2_embedding, gpt2_block, gpt2_head};
  }
}

/// The embedding, the blocks, the head.
inline std::vector<stage> parameters_of(transformer_shape const& s) {
  auto const made = stages_of(s.family);
  std::vector<stage> all{made.embedding(s)};
  for (std::int64_t layer = 0; layer < s.layers; ++layer)
    all.push_back(made.block(s, std::to_string(layer)));
  all.push_back(made.head(s));
  return all;
}

}  // namespace memfit::fit::detail
