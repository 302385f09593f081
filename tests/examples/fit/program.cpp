// memfit_fit as a person runs it: mistakes, answers as text and JSON, configuration files, README.
#include <array>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "../gpt2/program.hpp"

namespace {

using program::operator+;
using nlohmann::json;
using program::words;

class memfit_fit : public program::fixture {
 protected:
  json answer(const words& question, int status = 0) const {
    auto const r = run(question + words{"--json"});
    EXPECT_EQ(r.status, status) << r.err;
    return json::parse(r.out);
  }

  std::string config(const json& numbers) const {
    program::write(folder / "config.json", numbers.dump());
    return (folder / "config.json").string();
  }
};

struct mistake {
  std::string name;
  words arguments;
  std::string said;
};

class fit_mistakes : public memfit_fit, public testing::WithParamInterface<mistake> {};

TEST_P(fit_mistakes, are_one_line_and_status_2) {
  auto const r = run(GetParam().arguments);
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(program::lines(r.err), 1) << r.err;
  EXPECT_NE(r.err.find(GetParam().said), std::string::npos) << r.err;
  EXPECT_EQ(r.out, "");
}

words tiny(const words& more) {
  return words{"--model", "tiny", "--memory", "1GB"} + more;
}

INSTANTIATE_TEST_SUITE_P(
    program, fit_mistakes,
    testing::Values(
        mistake{"unknown_model", {"--model", "gpt-2", "--memory", "1GB"}, "tiny, small, gpt2, "},
        mistake{"unknown_device", {"--model", "gpt2", "--device", "rtx"}, "rtx-3060-12g, rtx-3090"},
        mistake{"no_model", {"--memory", "1GB"}, "one of --model and --config"},
        mistake{"two_models", tiny({"--config", "c.json"}), "one of --model and --config"},
        mistake{"no_memory", {"--model", "tiny"}, "--device or --memory"},
        mistake{"memory_of_no_unit",
                {"--model", "tiny", "--memory", "12Gib"},
                "--memory is '12Gib', but must be bytes, such as 12GiB"},
        mistake{"no_bytes", {"--model", "tiny", "--memory", "0"}, "--memory is '0'"},
        mistake{"cpu_without_bytes", {"--model", "tiny", "--device", "cpu"}, "must be given"},
        mistake{"empty_batch", tiny({"--batch", "0"}), "--batch is 0"},
        mistake{"large_batch", tiny({"--batch", "1048577"}), "at most 1048576"},
        mistake{"window_longer_than_the_table", tiny({"--seq", "129"}), "seq is 129"},
        mistake{"unknown_precision", tiny({"--precision", "32"}), "exact, 24, 16"},
        mistake{"no_plans", tiny({"--top", "0"}), "--top is 0"},
        mistake{"unknown_option", tiny({"--gpu"}), "--gpu"},
        mistake{"no_such_file",
                {"--config", "none.json", "--memory", "1GB"},
                "none.json: cannot be read"}),
    [](auto const& tested) { return tested.param.name; });

TEST_F(memfit_fit, refuses_files_that_are_no_configuration) {
  auto const said = [&](const std::string& content) {
    program::write(folder / "config.json", content);
    auto const r = run({"--config", (folder / "config.json").string(), "--memory", "1GB"});
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(program::lines(r.err), 1) << r.err;
    return r.err;
  };
  for (auto const& [content, why] : std::array<std::pair<std::string, std::string>, 8>{
           {{"", "is no JSON object"},
            {"[1]", "is no JSON object"},
            {"{}", "has no text model_type"},
            {R"({"model_type": "t5"})", "'t5', which is none of gpt2, bert"},
            {R"({"model_type": "gpt2", "n_layer": "2"})", "no whole number n_layer"},
            {R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 3,
                 "hidden_size": 8, "vocab_size": 9, "max_position_embeddings": 4,
                 "intermediate_size": 5})",
             "8 channels do not divide into 3 heads"},
            {R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 2,
                 "hidden_size": 8, "vocab_size": 9, "max_position_embeddings": 4,
                 "intermediate_size": 5, "attention_bias": true})",
             "has attention_bias"},
            {R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 2,
                 "hidden_size": 8, "vocab_size": 9, "max_position_embeddings": 4,
                 "intermediate_size": 5, "head_dim": 8})",
             "has a head_dim"}}})
    EXPECT_NE(said(content).find(why), std::string::npos) << content;
}

TEST_F(memfit_fit, knows_a_model_by_its_configuration_as_by_its_name) {
  json const layers{{"num_hidden_layers", 12}, {"num_attention_heads", 12},
                    {"hidden_size", 768},      {"intermediate_size", 3072},
                    {"vocab_size", 30522},     {"max_position_embeddings", 512},
                    {"type_vocab_size", 2},    {"model_type", "bert"}};
  auto roberta = layers, xlm = layers, llama = layers;
  roberta.update({{"model_type", "roberta"},
                  {"vocab_size", 50265},
                  {"max_position_embeddings", 514},
                  {"type_vocab_size", 1}});
  xlm = roberta;
  xlm.update({{"model_type", "xlm-roberta"}, {"vocab_size", 250002}});
  llama.update({{"model_type", "llama"},
                {"num_hidden_layers", 22},
                {"num_attention_heads", 32},
                {"num_key_value_heads", 4},
                {"hidden_size", 2048},
                {"intermediate_size", 5632},
                {"vocab_size", 32000},
                {"max_position_embeddings", 2048}});
  json const gpt2{{"model_type", "gpt2"}, {"n_layer", 12},       {"n_head", 12},
                  {"n_embd", 768},        {"vocab_size", 50257}, {"n_positions", 1024},
                  {"n_inner", nullptr}};
  for (auto const& [name, numbers] :
       std::array<std::pair<std::string, json>, 5>{{{"gpt2", gpt2},
                                                    {"bert-base", layers},
                                                    {"roberta-base", roberta},
                                                    {"xlm-roberta-base", xlm},
                                                    {"tinyllama-1.1b", llama}}}) {
    words const question{"--device", "a100-40g", "--seq", "256", "--top", "1"};
    auto const by_name = answer(question + words{"--model", name});
    auto const by_file = answer(question + words{"--config", config(numbers)});
    EXPECT_EQ(by_name["model"]["parameters"], by_file["model"]["parameters"]) << name;
    EXPECT_EQ(by_name["plans"], by_file["plans"]) << name;
  }
}

TEST_F(memfit_fit, says_what_gpt2_xl_turns_on_to_fit_a_card_of_12_gb) {
  auto const r = run({"--model", "gpt2-xl", "--device", "rtx-3060-12g", "--batch", "64"});
  EXPECT_EQ(r.status, 0) << r.err;
  for (auto const* said :
       {"1,557,611,200 parameters", "plain ", "plan 3",
        "memfit::optimizer<memfit::adamw, memfit::root8, memfit::corrected<memfit::bf16>>",
        "gpt2_train --model gpt2-xl --batch 64 --seq 1024 --precision bf16", "M moments",
        "moments in root8: 9.3 GB less"})
    EXPECT_NE(r.out.find(said), std::string::npos) << said << "\n" << r.out;
  std::istringstream lines{r.out};
  int bars = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find('|') != std::string::npos) {
      EXPECT_EQ(line.size(), 100U) << line;
      ++bars;
    }
  EXPECT_EQ(bars, 4);
}

TEST_F(memfit_fit, answers_in_json_what_fits_in_order) {
  auto const a = answer({"--model", "gpt2", "--memory", "4GiB", "--device", "t4", "--top", "50"});
  EXPECT_EQ(a["device"]["bytes"], std::int64_t{4} << 30);
  EXPECT_EQ(a["model"]["parameters"], 124439808);
  EXPECT_GT(a["plain"]["bytes"]["total"], std::int64_t{4} << 30);
  EXPECT_EQ(a["nearest"], nullptr);
  ASSERT_GT(a["plans"].size(), 2U);
  double before = 0;
  for (auto const& p : a["plans"]) {
    EXPECT_LE(p["bytes"]["total"], std::int64_t{4} << 30);
    EXPECT_GE(p["seconds"], before);
    EXPECT_FALSE(p["techniques"].empty());
    before = p["seconds"];
  }
}

TEST_F(memfit_fit, needs_nothing_turned_on_where_everything_fits) {
  auto const r = run({"--model", "tiny", "--memory", "1TB", "--precision", "exact"});
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.out.find("nothing needs to be switched on"), std::string::npos) << r.out;
}

TEST_F(memfit_fit, names_the_missing_bytes_where_nothing_fits_and_they_are_enough) {
  words const question{"--model", "gpt2", "--precision", "exact"};
  auto const refused = run(question + words{"--memory", "500MB"});
  EXPECT_EQ(refused.status, 3);
  EXPECT_NE(refused.out.find("nearest"), std::string::npos);
  EXPECT_EQ(program::lines(refused.err), 1) << refused.err;
  EXPECT_EQ(refused.err.find("--precision"), std::string::npos) << refused.err;
  auto const missing = answer(question + words{"--memory", "500MB"}, 3)["missing"];
  auto const bytes = missing.get<std::int64_t>();
  EXPECT_NE(refused.err.find(std::to_string(bytes) + " bytes"), std::string::npos) << refused.err;
  EXPECT_EQ(run(question + words{"--memory", std::to_string(500'000'000 + bytes)}).status, 0);
  EXPECT_EQ(run(question + words{"--memory", std::to_string(499'999'999 + bytes)}).status, 3);
}

TEST_F(memfit_fit, says_which_precision_fits_where_the_one_wanted_does_not) {
  auto const r = run({"--model", "gpt2", "--memory", "1GB", "--precision", "exact"});
  EXPECT_EQ(r.status, 3);
  EXPECT_NE(r.err.find("; with --precision 24 it fits"), std::string::npos) << r.err;
}

TEST_F(memfit_fit, runs_the_commands_of_its_readme) {
  std::istringstream readme{program::read(FIT_README)};
  config({{"model_type", "gpt2"},
          {"n_layer", 2},
          {"n_head", 2},
          {"n_embd", 64},
          {"vocab_size", 100},
          {"n_positions", 64}});
  int commands = 0;
  for (std::string line; std::getline(readme, line);) {
    std::istringstream split{line};
    std::string word;
    if (!(split >> word) || word != "memfit_fit") continue;
    words arguments;
    while (split >> word)
      arguments.push_back(word == "config.json" ? (folder / word).string() : word);
    EXPECT_EQ(run(arguments).status, 0) << line;
    ++commands;
  }
  EXPECT_GE(commands, 2);
}

}  // namespace
