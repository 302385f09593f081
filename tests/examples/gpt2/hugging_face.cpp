// Files of transformers: what is read from one computes what transformers does, what is written is
// what was read, and what is no GPT-2 is refused.
#include "hugging_face.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <memfit/checkpoint/plan/simple.hpp>
#include <memfit/checkpoint/run.hpp>
#include <memfit/exec/host.hpp>
#include <memfit/state_file/reader.hpp>
#include <memfit/state_file/writer.hpp>

#include "choices.hpp"
#include "host_backend.hpp"
#include "model.hpp"
#include "nowhere.hpp"
#include "program.hpp"
#include "user_error.hpp"
#include "vocabulary.hpp"

namespace {

using gpt2::bf16;
using gpt2::fp16;
using gpt2::index;
using gpt2::token;
using gpt2::user_error;
using memfit::stored_type;
using memfit::tensor_file;
using program::operator+;
using program::words;
namespace fs = std::filesystem;

fs::path const golden = fs::path{GPT2_GOLDEN} / "transformers" / "model.safetensors";
constexpr gpt2::config golden_sizes{
    .layers = 2, .heads = 2, .channels = 16, .context = 16, .vocabulary = 61};
constexpr gpt2::extent shape{.batch = 2, .seq = 13};
constexpr double tolerance = 1e-4;

struct expectation {
  std::vector<double> tokens, loss, logits;
};

expectation expected() {
  expectation e;
  std::istringstream file{program::read(golden.parent_path() / "expected.txt")};
  for (std::string line; std::getline(file, line);) {
    std::istringstream in{line};
    std::string name;
    in >> name;
    std::vector<double> const values{std::istream_iterator<double>{in}, {}};
    if (name == "tokens") e.tokens = values;
    if (name == "loss") e.loss = values;
    if (name == "logits") e.logits = values;
  }
  return e;
}

TEST(transformers, computes_the_same_logits_and_loss) {
  auto const sizes = gpt2::sizes_in(golden, {});
  EXPECT_EQ(sizes.heads, golden_sizes.heads);
  gpt2::weights<float> parameters{sizes}, gradients{sizes};
  gpt2::read_weights(golden, parameters);

  auto const e = expected();
  std::vector<token> inputs, targets;
  for (index row = 0; row < shape.batch; ++row)
    for (index i = 0; i < shape.seq; ++i) {
      auto const at = e.tokens.begin() + row * (shape.seq + 1) + i;
      inputs.push_back(static_cast<token>(at[0]));
      targets.push_back(static_cast<token>(at[1]));
    }
  gpt2::host_backend<float> on{1};
  gpt2::model<float> model{on, sizes, shape, parameters, gradients};
  memfit::checkpointed<memfit::host> run{memfit::host{1}, model.chain(),
                                         memfit::checkpoint::keep_all(model.chain())};
  run.forward(model, inputs.data(), {});
  std::vector<float> logits(static_cast<std::size_t>(sizes.vocabulary));
  ASSERT_EQ(std::ssize(e.logits), shape.rows() * sizes.vocabulary);
  for (index row = 0; row < shape.rows(); ++row) {
    model.read_logits(row, logits.data());
    for (std::size_t i = 0; i < logits.size(); ++i)
      EXPECT_NEAR(static_cast<double>(logits[i]),
                  e.logits[static_cast<std::size_t>(row) * logits.size() + i], tolerance)
          << row << ' ' << i;
  }
  EXPECT_NEAR(model.loss(targets.data()), e.loss.at(0), tolerance);
}

// A file of tensors in memory, to be changed and written.
struct contents {
  std::vector<memfit::stored_tensor> tensors;
  std::vector<std::string> bytes;

  contents() : contents(golden) {}
  explicit contents(const fs::path& path) {
    tensor_file const from{path.string()};
    for (auto const& t : from.tensors()) {
      tensors.push_back(t);
      bytes.emplace_back(static_cast<std::size_t>(t.bytes()), '\0');
      from.read(t, 0, bytes.back().data(), t.bytes());
    }
  }

  std::size_t place(const std::string& name) const {
    auto const found =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
    return static_cast<std::size_t>(found - tensors.begin());
  }
  void add(const std::string& name, stored_type type, const std::vector<index>& extents,
           const std::string& values) {
    tensors.push_back({name, type, extents});
    bytes.push_back(values);
  }
  void remove(const std::string& name) {
    auto const at = static_cast<std::ptrdiff_t>(place(name));
    tensors.erase(tensors.begin() + at);
    bytes.erase(bytes.begin() + at);
  }
  void write(const fs::path& path) const {
    memfit::tensor_file_writer to{path.string(), tensors};
    for (std::size_t i = 0; i < tensors.size(); ++i)
      to.write(i, bytes[i].data(), std::ssize(bytes[i]));
    to.commit();
  }
};

template <class T>
void store_as(contents& c) {
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    std::string converted;
    for (std::size_t at = 0; at < c.bytes[i].size(); at += sizeof(float)) {
      float x = 0;
      std::copy_n(c.bytes[i].data() + at, sizeof x, reinterpret_cast<char*>(&x));
      T const stored(x);
      converted.append(reinterpret_cast<const char*>(&stored), sizeof stored);
    }
    c.bytes[i] = converted;
    c.tensors[i].type = memfit::stored_as<T>;
  }
}

std::string const of_token = "transformer.wte.weight";

class file_of_weights : public program::fixture {
 protected:
  fs::path write(const contents& c, const std::string& config = R"({"n_head": 2})") const {
    auto const file = folder / "model.safetensors";
    c.write(file);
    program::write(folder / "config.json", config);
    return file;
  }
};

// Values of T are read from values of Stored as if these were exact.
template <class T, class Stored>
void expect_rounded_once(const fs::path& file) {
  gpt2::weights<float> exact{golden_sizes};
  gpt2::read_weights(golden, exact);
  gpt2::weights<T> found{golden_sizes};
  ASSERT_EQ(gpt2::sizes_in(file, {}).vocabulary, golden_sizes.vocabulary);
  gpt2::read_weights(file, found);
  for (std::size_t i = 0; i < exact.all().size(); ++i) {
    auto const& from = *exact.all()[i];
    auto const& to = *found.all()[i];
    for (index at = 0; at < from.size(); ++at)
      ASSERT_EQ(static_cast<float>(to[at]),
                static_cast<float>(T(static_cast<float>(Stored(from[at])))))
          << from.name() << ' ' << at;
  }
}

TEST_F(file_of_weights, may_have_any_type_of_floats) {
  contents half, brain;
  store_as<fp16>(half);
  store_as<bf16>(brain);
  auto file = write(half);
  expect_rounded_once<float, fp16>(file);
  expect_rounded_once<bf16, fp16>(file);
  file = write(brain);
  expect_rounded_once<fp16, bf16>(file);
  expect_rounded_once<bf16, float>(golden);
}

TEST_F(file_of_weights, may_lack_the_prefix_and_have_what_follows_from_the_rest) {
  contents c;
  for (auto& t : c.tensors) t.name = t.name.substr(std::string{"transformer."}.size());
  c.add("lm_head.weight", stored_type::f32, {61, 16}, c.bytes[c.place("wte.weight")]);
  c.add("h.1.attn.bias", stored_type::u8, {1, 1, 4, 4}, std::string(16, '\1'));
  c.add("h.0.attn.masked_bias", stored_type::f32, {}, std::string(4, '\0'));
  expect_rounded_once<float, float>(write(c));
}

TEST_F(file_of_weights, is_written_as_it_was_read) {
  gpt2::weights<float> w{golden_sizes};
  gpt2::read_weights(golden, w);
  auto const file = folder / "exported.safetensors";
  gpt2::require_place_for_weights(file, golden_sizes, {});
  gpt2::write_weights(file, golden_sizes, w, [&](std::size_t t, index first, index count) {
    auto const* const from = w.all()[t]->data() + first;
    return std::vector<float>(from, from + count);
  });
  contents const before, after{file};
  ASSERT_EQ(after.tensors.size(), before.tensors.size());
  for (std::size_t i = 0; i < before.tensors.size(); ++i) {
    EXPECT_EQ(after.tensors[i].name, before.tensors[i].name);
    EXPECT_EQ(after.tensors[i].type, before.tensors[i].type);
    EXPECT_EQ(after.tensors[i].shape, before.tensors[i].shape);
    EXPECT_TRUE(after.bytes[i] == before.bytes[i]) << before.tensors[i].name;
  }
  EXPECT_EQ(tensor_file{file.string()}.word_at("format"), "pt");
  EXPECT_EQ(gpt2::sizes_in(file, gpt2::all_of(golden_sizes)).heads, golden_sizes.heads);
}

struct fault {
  std::string name;
  std::function<void(contents&)> make;
  std::string said;
  std::string config = R"({"n_head": 2})";
  gpt2::some_sizes asked = {};
};

void change_nothing(contents&) {}

class every_fault : public file_of_weights, public testing::WithParamInterface<fault> {};

TEST_P(every_fault, is_refused_by_name) {
  contents c;
  GetParam().make(c);
  auto const file = write(c, GetParam().config);
  gpt2::weights<fp16> w{golden_sizes};
  try {
    gpt2::sizes_in(file, GetParam().asked);
    gpt2::read_weights(file, w);
    FAIL() << "it was taken";
  } catch (const user_error& refusal) {
    std::string const said = refusal.what();
    EXPECT_TRUE(said.starts_with("--init: ")) << said;
    EXPECT_NE(said.find(folder.string()), std::string::npos) << said;
    EXPECT_NE(said.find(GetParam().said), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(
    hugging_face, every_fault,
    testing::Values(
        fault{"no_embedding", [](contents& c) { c.remove(of_token); }, "'wte.weight'"},
        fault{"missing_and_unknown",
              [](contents& c) {
                c.tensors[c.place("transformer.h.1.mlp.c_fc.bias")].name = "transformer.h.1.extra";
              },
              "missing 'transformer.h.1.mlp.c_fc.bias' unknown 'transformer.h.1.extra'"},
        fault{"many_unknown",
              [](contents& c) {
                for (int i = 0; i < 13; ++i)
                  c.add("x" + std::to_string(i), stored_type::u8, {0}, "");
              },
              "'x5', 'x6' and 3 more"},
        fault{"a_shape",
              [](contents& c) {
                c.tensors[c.place("transformer.h.0.attn.c_attn.weight")].shape = {48, 16};
              },
              "'transformer.h.0.attn.c_attn.weight': its shape is [48,16], expected [16,48]"},
        fault{"an_embedding_of_one_extent",
              [](contents& c) { c.tensors[c.place(of_token)].shape = {61 * 16}; }, "[976]"},
        fault{"an_empty_embedding",
              [](contents& c) {
                auto const at = c.place(of_token);
                c.tensors[at].shape = {0, index{1} << 62};
                c.bytes[at].clear();
              },
              "expected two extents of 1 to 1048576"},
        fault{"a_type",
              [](contents& c) {
                auto const at = c.place("transformer.ln_f.bias");
                c.tensors[at].type = stored_type::f64;
                c.bytes[at].resize(16 * 8);
              },
              "its type is F64"},
        fault{"a_head_of_its_own",
              [](contents& c) {
                auto other = c.bytes[c.place(of_token)];
                other.back() ^= 1;
                c.add("lm_head.weight", stored_type::f32, {61, 16}, other);
              },
              "'lm_head.weight': it is not 'transformer.wte.weight'"},
        fault{"a_value_too_large",
              [](contents& c) {
                float const large = 1e6F;
                std::copy_n(reinterpret_cast<const char*>(&large), sizeof large,
                            c.bytes[c.place("transformer.wpe.weight")].data() + 3 * sizeof large);
              },
              "element 3 is 1000000.0"},
        fault{"no_json", change_nothing, "JSON", "{\"n_head\": 2"},
        fault{"json_of_a_list", change_nothing, "JSON", "[2]"},
        fault{"heads_in_words", change_nothing, "n_head is \"two\"", R"({"n_head": "two"})"},
        fault{"another_depth", change_nothing, "has 2 layers, and '",
              R"({"n_head": 2, "n_layer": 12})"},
        fault{"another_activation", change_nothing, "activation_function is \"relu\"",
              R"({"activation_function": "relu"})"},
        fault{"heads_that_nobody_knows", change_nothing, "--heads", "{}"},
        fault{"channels_that_were_not_asked_for",
              change_nothing,
              "has 16 channels, and the command line asks for 128",
              R"({"n_head": 2})",
              {{}, {}, 128, {}, {}}},
        fault{"heads_that_were_not_asked_for",
              change_nothing,
              "has 2 heads, and the command line asks for 4",
              R"({"n_head": 2})",
              {{}, 4, {}, {}, {}}}),
    [](const auto& tested) { return tested.param.name; });

class program_with_weights : public program::fixture {
 protected:
  // Numbers below the vocabulary of the golden file.
  void SetUp() override {
    fixture::SetUp();
    std::string numbers;
    for (int i = 0; i < 400; ++i) numbers += {static_cast<char>(i * i % 61), '\0'};
    program::write(text, numbers);
  }

  program::result train(const words& more) const {
    return run(words{"--data", text.string(), "--tokens", "uint16", "--batch", "2", "--threads",
                     "1", "--steps", "2"} +
               more);
  }
};

TEST_F(program_with_weights, begins_with_them_and_exports_all_that_it_knows) {
  auto const exported = (folder / "exported.safetensors").string();
  auto const r = train(
      {"--init", golden.string(), "--export", exported, "--precision", "bf16", "--sample", "5"});
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("2 layers, 2 heads, 16 channels, context 16, vocabulary 61, 7824 par"),
            std::string::npos)
      << r.out;
  EXPECT_NE(r.out.find("360 tokens to train on, 40 held out"), std::string::npos) << r.out;
  std::istringstream sample{r.out.substr(r.out.find("sample:\n") + 8)};
  std::vector<int> const sampled{std::istream_iterator<int>{sample}, {}};
  EXPECT_EQ(sampled.size(), 5U);
  EXPECT_LT(*std::max_element(sampled.begin(), sampled.end()), 61);
  // Beyond the 16 bits that the network has seen.
  contents const trained{exported};
  auto const& bytes = trained.bytes[trained.place(of_token)];
  bool fine = false;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) fine = fine || bytes[i] != 0;
  EXPECT_TRUE(fine);
  auto const again = train({"--init", exported});
  EXPECT_EQ(again.status, 0) << again.err;
}

TEST_F(program_with_weights, refuses_in_one_line) {
  program::write(folder / "config.json", R"({"n_layer": 3})");
  auto const here = (folder / "model.safetensors").string();
  struct mistake {
    words options;
    std::string said;
  };
  for (auto const& [options, said] : std::vector<mistake>{
           {{"--init", golden.string(), "--model", "gpt2"}, "command line asks for 12"},
           {{"--init", golden.string(), "--resume", here}, "--init and --resume"},
           {{"--init", text.string()}, text.string()},
           {{"--init", here}, "No such file"},
           {{"--init", golden.string(), "--export", here}, "has 2 layers, and '"},
           {{"--init", golden.string(), "--export", text.string()}, "one of the files to train"},
           {{"--init", golden.string(), "--save", here, "--export",
             folder.string() + "/./model.safetensors"},
            "--save and --export"}}) {
    auto const r = train(options);
    EXPECT_EQ(r.status, 2) << said;
    EXPECT_EQ(program::lines(r.err), 1) << r.err;
    EXPECT_NE(r.err.find(said), std::string::npos) << r.err;
  }
}

TEST_F(program_with_weights, refuses_tokens_beyond_the_vocabulary) {
  auto numbers = program::read(text);
  numbers[201] = '\1';
  program::write(text, numbers);
  auto const r = train({"--model", "tiny", "--vocabulary", "256", "--seq", "8"});
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.err.find("text.txt': the token at byte 200 is "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find(", and the vocabulary has 256"), std::string::npos) << r.err;
  program::write(text, numbers + "odd");
  EXPECT_NE(train({"--model", "tiny"}).err.find("no numbers of 16 bits"), std::string::npos);
}

TEST_F(program_with_weights, trains_on_bytes_by_the_numbers_of_a_large_vocabulary) {
  program::write(text, std::string(2000, 'a') + "\xFF");
  auto const r = run(words{"--data",   text.string(), "--layers",  "1", "--channels",   "8",
                           "--heads",  "1",           "--context", "8", "--vocabulary", "50257",
                           "--steps",  "1",           "--batch",   "1", "--threads",    "1",
                           "--sample", "50"});
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.substr(r.out.find("sample:\n") + 8).size(), 51U) << r.out;
}

TEST(models, have_the_published_numbers_of_parameters) {
  std::vector<index> counts;
  for (auto const& [name, sizes] : gpt2::models) {
    gpt2::nowhere none;
    gpt2::weights<float> w{sizes, none};
    if (name.starts_with("gpt2")) counts.push_back(w.bytes() / 4);
  }
  EXPECT_EQ(counts, (std::vector<index>{124439808, 354823168, 774030080, 1557611200}));
}

TEST(bytes_as_tokens, are_themselves_or_as_gpt2_numbers_them) {
  gpt2::byte_tokens const plain{256}, published{gpt2::gpt2_vocabulary};
  for (int b = 0; b < 256; ++b) {
    auto const byte = static_cast<std::uint8_t>(b);
    EXPECT_EQ(plain.of(byte), b);
    EXPECT_EQ(published.byte_of(published.of(byte)), byte);
  }
  for (auto const& [byte, number] : std::vector<std::pair<int, int>>{{'!', 0},
                                                                     {'a', 64},
                                                                     {'~', 93},
                                                                     {0xA1, 94},
                                                                     {0xAC, 105},
                                                                     {0xAE, 106},
                                                                     {0xFF, 187},
                                                                     {0, 188},
                                                                     {'\n', 198},
                                                                     {' ', 220},
                                                                     {0x7F, 221},
                                                                     {0xA0, 254},
                                                                     {0xAD, 255}})
    EXPECT_EQ(published.of(static_cast<std::uint8_t>(byte)), number) << byte;
}

}  // namespace
