// Transformers from the usual numbers: published counts, and what makes none.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "memfit/checkpoint/plan.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/cost.hpp"
#include "memfit/fit/estimate.hpp"
#include "memfit/fit/transformer.hpp"
#include "memfit/rule/adaptive.hpp"

namespace {

using namespace memfit;
using fit::transformer_shape;

std::int64_t parameters(fit::model const& m) {
  std::set<std::string> seen;
  std::int64_t sum = 0;
  for (auto const& s : m.stages)
    for (auto const& p : s.parameters)
      if (seen.insert(p.name).second) sum += p.count;
  return sum;
}

/// Counts of the published checkpoints: GPT-2 with its tied head, BERT and RoBERTa with the pooler
/// and without the head of their pre-training, Llama with a head of its own.
TEST(fit_transformer, has_the_published_number_of_parameters) {
  for (auto const& [name, count] : {std::pair{"gpt2", 124'439'808LL},
                                    {"gpt2-medium", 354'823'168LL},
                                    {"gpt2-large", 774'030'080LL},
                                    {"gpt2-xl", 1'557'611'200LL},
                                    {"bert-base", 109'482'240LL},
                                    {"bert-large", 335'141'888LL},
                                    {"roberta-base", 124'645'632LL},
                                    {"roberta-large", 355'359'744LL},
                                    {"xlm-roberta-base", 278'043'648LL},
                                    {"xlm-roberta-large", 559'890'432LL},
                                    {"tinyllama-1.1b", 1'100'048'384LL},
                                    {"llama-2-7b", 6'738'415'616LL},
                                    {"llama-2-13b", 13'015'864'320LL},
                                    {"llama-3-8b", 8'030'261'248LL}})
    EXPECT_EQ(parameters(fit::transformer(fit::known_model(name))), count) << name;
}

TEST(fit_transformer, an_unknown_name_is_told_the_known_ones) {
  try {
    fit::known_model("gpt3");
    FAIL();
  } catch (argument_error const& e) {
    std::string const said = e.what();
    for (auto const& s : fit::known_models()) EXPECT_NE(said.find(s.name), said.npos) << said;
    EXPECT_NE(said.find("'gpt3'"), said.npos);
  }
}

TEST(fit_transformer, gpt2_xl_has_moments_8_5_gb_smaller_in_8_bits) {
  auto const xl = fit::transformer(fit::known_model("gpt2-xl"));
  fit::training t{.seq = 64, .states = cost_of<adamw, fp32>()};
  auto const wide = fit::estimate(xl, t).states();
  t.states = cost_of<adamw, root8>();
  EXPECT_GE(wide - fit::estimate(xl, t).states(), 8'500'000'000);
}

/// Each model's chain can be planned, its variants keep less and less, and what is computed again
/// takes time.
TEST(fit_transformer, every_known_model_has_a_chain_of_falling_variants) {
  for (auto const& s : fit::known_models()) {
    SCOPED_TRACE(s.name);
    auto const m = fit::transformer(s);
    auto const chain = m.chain({2, 64, 2}, {});
    ASSERT_EQ(chain.size(), m.stages.size());
    auto const& block = chain[1].variants;
    ASSERT_EQ(block.size(), 3u);
    for (std::size_t i = 1; i < 3; ++i) {
      EXPECT_LT(block[i].saved, block[i - 1].saved);
      EXPECT_GT(block[i].backward, block[i - 1].backward);
      EXPECT_LT(block[i].replay, block[i].forward);
    }
    EXPECT_GT(chain[1].forward, 0);
    EXPECT_LT(checkpoint::every(chain, 1).peak, checkpoint::keep_all(chain).peak);
  }
}

/// Two windows of 32 tokens, in fp32: 64 rows of 64 channels, 8 matrices of squares.
constexpr std::int64_t narrow = 64 * 64 * 4, squares = 8 * 32 * 32 * 4, row_numbers = 64 * 4;

TEST(fit_transformer, a_llama_keeps_two_raised_tensors_and_fewer_keys) {
  auto const chain = fit::transformer({.name = "by hand",
                                       .family = fit::family::llama,
                                       .layers = 1,
                                       .heads = 4,
                                       .channels = 64,
                                       .vocabulary = 50,
                                       .context = 32,
                                       .wide = 96,
                                       .kv_heads = 2})
                         .chain({2, 32, 4}, {});
  std::int64_t const packed = 64 * (64 + 2 * 32) * 4, wide = 64 * 96 * 4;
  auto const& block = chain[1].variants;
  EXPECT_EQ(block[2].saved, 2 * row_numbers + packed + 2 * narrow + 2 * wide);
  EXPECT_EQ(block[1].saved, block[2].saved + squares);
  EXPECT_EQ(block[0].saved, block[1].saved + 2 * narrow + wide);
  EXPECT_EQ(block[0].backward_scratch, std::max(2 * wide + narrow, packed + narrow + squares));
  EXPECT_EQ(chain[2].variants[0].saved, 2 * row_numbers + narrow + 64 * 50 * 4);
}

TEST(fit_transformer, a_bert_keeps_what_its_norms_read_and_a_pooled_token) {
  auto const chain = fit::transformer({.name = "by hand",
                                       .family = fit::family::bert,
                                       .layers = 1,
                                       .heads = 4,
                                       .channels = 64,
                                       .vocabulary = 50,
                                       .context = 32,
                                       .token_types = 2})
                         .chain({2, 32, 4}, {});
  std::int64_t const packed = 3 * narrow, wide = 4 * narrow;
  auto const& block = chain[1].variants;
  EXPECT_EQ(chain[0].variants[0].saved, 2 * row_numbers + narrow);
  EXPECT_EQ(block[2].saved, 4 * row_numbers + packed + 3 * narrow + wide);
  EXPECT_EQ(block[0].saved, block[2].saved + squares + narrow + wide);
  EXPECT_EQ(chain[2].variants[0].saved, 2 * 64 * 4);
}

/// Of the 6.7 billion parameters of a Llama, tensor-parallel ranks divide all but the norms.
TEST(fit_transformer, tensor_parallel_ranks_divide_products_and_what_they_make) {
  auto const m = fit::transformer(fit::known_model("llama-2-7b"));
  fit::training t{.seq = 128, .column = cost_of_column<bf16>(), .states = cost_of<adamw, fp32>()};
  auto const whole = fit::estimate(m, t);
  t.ranks.tensor = 8;
  auto const part = fit::estimate(m, t);
  std::int64_t const norms = 65 * 4096;
  EXPECT_EQ(part.parameters, 2 * ((6'738'415'616 - norms) / 8 + norms));
  EXPECT_LT(part.activations, whole.activations / 2);
  EXPECT_GT(part.activations, whole.activations / 8);
}

TEST(fit_transformer, refuses_numbers_that_make_none) {
  auto const good = fit::known_model("gpt2");
  struct {
    char const* what;
    std::int64_t transformer_shape::*member;
    std::int64_t value;
  } const bad[] = {{"layers", &transformer_shape::layers, 0},
                   {"layers", &transformer_shape::layers, INT64_MAX},
                   {"heads", &transformer_shape::heads, 0},
                   {"heads", &transformer_shape::heads, 7},
                   {"channels", &transformer_shape::channels, -1},
                   {"vocabulary", &transformer_shape::vocabulary, 0},
                   {"context", &transformer_shape::context, 0},
                   {"wide", &transformer_shape::wide, -1},
                   {"kv_heads", &transformer_shape::kv_heads, 5},
                   {"kv_heads", &transformer_shape::kv_heads, 24},
                   {"token_types", &transformer_shape::token_types, -1}};
  for (auto const& b : bad) {
    auto shape = good;
    shape.*b.member = b.value;
    try {
      fit::transformer(shape);
      ADD_FAILURE() << b.what << ' ' << b.value;
    } catch (argument_error const& e) {
      std::string const said = e.what();
      EXPECT_NE(said.find(b.what), said.npos) << said;
      EXPECT_NE(said.find("'gpt2'"), said.npos) << said;
    }
  }
}

TEST(fit_transformer, refuses_passes_that_it_cannot_make) {
  auto const gpt2 = fit::transformer(fit::known_model("gpt2"));
  for (auto const& p : {fit::pass{0, 1, 4, 1}, fit::pass{1, 0, 4, 1}, fit::pass{1, 1025, 4, 1},
                        fit::pass{1, 1, 0, 1}, fit::pass{1, 1, 4, 13}, fit::pass{1LL << 40, 1024}})
    EXPECT_THROW(gpt2.chain(p, {}), argument_error) << p.batch << ' ' << p.seq;
  EXPECT_THROW(gpt2.chain({}, {.flops = 0}), argument_error);
  auto const llama = fit::transformer(fit::known_model("llama-2-7b"));
  EXPECT_NO_THROW(llama.chain({1, 5000}, {}));
  EXPECT_THROW(llama.chain({1, std::int64_t{1} << 33}, {}), argument_error);
}

}  // namespace
