// States in files: what is saved goes on bit for bit where it was, under every kind of column, with
// rules of the user's own; what is not the optimizer's, or no state at all, changes nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/state_file.hpp"
#include "support/files.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::file_error;
using memfit::stored_tensor;
using memfit::stored_type;
using memfit::tensor_file;

// A rule as a user writes it, to be saved under its name.
struct cautious {
  double lr = 1e-2, beta = 0.9;
  bool stubborn = false;
  static constexpr char const* name = "cautious";
  static constexpr std::array<memfit::slot, 1> slots{{{"buffer", memfit::range::any}}};
  memfit::hyperparameter_list hyperparameters() {
    return {{"lr", lr}, {"beta", beta}, {"stubborn", stubborn}};
  }
  struct constants {
    float lr, beta;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      s[0] = memfit::fma(beta, s[0], g);
      p = memfit::select(s[0] * g > F(0.0f), memfit::fma(-lr, s[0], p), p);
    }
  };
  MEMFIT_HD constants at(std::int64_t) const {
    return {static_cast<float>(stubborn ? 0.0 : lr), static_cast<float>(beta)};
  }
};

// One for plain float that says nothing of itself.
struct silent {
  double lr = 1e-2;
  static constexpr std::array<memfit::slot, 1> slots{{{"sum", memfit::range::non_negative}}};
  struct constants {
    float lr;
    void operator()(float& p, float g, float (&s)[1]) const {
      s[0] = memfit::fma(g, g, s[0]);
      p = memfit::fma(-lr, g / (1 + memfit::sqrt(s[0])), p);
    }
  };
  constants at(std::int64_t) const { return {static_cast<float>(lr)}; }
};

template <class Rule, class Format, class Param>
struct run {
  using element = typename memfit::column_for<Param>::element;
  static constexpr std::int64_t counts[] = {1000, 0, 37};
  static constexpr char const* names[] = {"h.0.w \"\xc3\xa9\"", "", "b"};

  std::vector<std::vector<element>> w;
  memfit::optimizer<Rule, Format, Param> opt;

  explicit run(double lr, std::uint64_t seed = 0)
      : w(start()),
        opt(memfit::host{1}, Rule{.lr = lr}, refs(), {.min_quantized = 100, .seed = seed}) {}

  static std::vector<std::vector<element>> start() {
    std::vector<std::vector<element>> all;
    for (auto const n : counts) {
      auto& one = all.emplace_back();
      for (float x : test::make_input(test::kind::normal, n, 7)) one.emplace_back(x);
    }
    return all;
  }
  std::vector<memfit::tensor_ref<element>> refs() {
    std::vector<memfit::tensor_ref<element>> all;
    for (std::size_t i = 0; i < w.size(); ++i) all.push_back({w[i].data(), counts[i], names[i]});
    return all;
  }
  void train(std::uint64_t first, std::uint64_t last) {
    for (auto step = first; step <= last; ++step) {
      std::vector<std::vector<float>> g;
      for (auto const n : counts)
        g.push_back(test::make_input(step == 2 ? test::kind::sparse : test::kind::normal, n, step));
      opt.step(g);
      opt.step_one(2, g[2]);
    }
  }
  std::string saved(test::folder const& in) {
    memfit::save_state(in / "saved", opt);
    return test::content(in / "saved");
  }
};

template <class Run>
void resumes_bit_for_bit() {
  test::folder const in;
  Run uninterrupted(1e-2, 5), resumed(1.0, 9);
  uninterrupted.train(1, 3);
  auto const half = uninterrupted.saved(in);
  for (std::size_t i = 0; i < resumed.w.size(); ++i)
    std::copy(uninterrupted.w[i].begin(), uninterrupted.w[i].end(), resumed.w[i].begin());
  memfit::load_state(in / "saved", resumed.opt);
  EXPECT_TRUE(resumed.saved(in) == half);
  uninterrupted.train(4, 6);
  resumed.train(4, 6);
  EXPECT_TRUE(resumed.saved(in) == uninterrupted.saved(in));
  for (std::size_t i = 0; i < resumed.w.size(); ++i)
    EXPECT_EQ(test::bytes_of(resumed.w[i]), test::bytes_of(uninterrupted.w[i])) << i;
}

using split_run = run<memfit::adamw, memfit::float8, memfit::split<memfit::bf16>>;
using noisy_run =
    run<cautious, memfit::blocked<memfit::dynamic8, 64>, memfit::stochastic<memfit::bf16>>;
using silent_run = run<silent, memfit::linear8, memfit::master<memfit::fp16>>;

TEST(states, resume_with_what_the_parameter_column_keeps) {
  resumes_bit_for_bit<split_run>();
}
TEST(states, resume_a_users_rule_and_the_noise) {
  resumes_bit_for_bit<noisy_run>();
}

TEST(states, resume_a_rule_that_says_nothing_of_itself) {
  test::folder const in;
  silent_run trained(1e-2), resumed(1e-2);
  trained.train(1, 3);
  auto const saved = trained.saved(in);
  memfit::load_state(in / "saved", resumed.opt);
  EXPECT_TRUE(resumed.saved(in) == saved);
}

TEST(states, groups_and_what_is_frozen_go_on) {
  test::folder const in;
  split_run trained(1e-2), resumed(1.0);
  for (auto* r : {&trained, &resumed})
    r->opt.add_group({"b"}, [](auto& rule) { rule.weight_decay = 0.5; });
  trained.opt.rule(1).lr = 0.25;
  trained.opt.set_group(1, 1);
  trained.opt.freeze(std::size_t{2});
  resumed.opt.freeze(std::size_t{0});
  trained.train(1, 2);
  auto const saved = trained.saved(in);
  memfit::load_state(in / "saved", resumed.opt);
  EXPECT_TRUE(resumed.saved(in) == saved);
  EXPECT_EQ(resumed.opt.rule(1).lr, 0.25);
  EXPECT_EQ(resumed.opt.group_of(1), 1u);
  EXPECT_TRUE(resumed.opt.is_frozen(2));
  EXPECT_FALSE(resumed.opt.is_frozen(0));
  split_run one_group(1e-2);
  test::expect_refusal<file_error>([&] { memfit::load_state(in / "saved", one_group.opt); },
                                   {"optimizer.groups", "'2'", "'1'"});
}

TEST(states, several_in_one_file_by_prefix) {
  test::folder const in;
  split_run a(1e-2), b(1e-3);
  a.train(1, 2);
  auto const of_a = a.saved(in), of_b = b.saved(in);
  test::expect_refusal<memfit::argument_error>([&] { memfit::save_state(in / "f", a.opt, b.opt); },
                                               {"'#1.exp_avg'", "comes twice"});
  memfit::save_state(in / "f", memfit::states(a.opt, {.prefix = "a/"}),
                     memfit::states(b.opt, {.prefix = "b/"}));
  memfit::load_state(in / "f", memfit::states(a.opt, {.prefix = "b/"}),
                     memfit::states(b.opt, {.prefix = "a/"}));
  EXPECT_TRUE(a.saved(in) == of_b);
  EXPECT_TRUE(b.saved(in) == of_a);
}

/// A file in parts that a test can change.
struct taken_apart {
  std::vector<stored_tensor> tensors;
  std::vector<std::string> data;
  memfit::stored_words words;

  explicit taken_apart(std::string const& path) {
    tensor_file const f(path);
    tensors = f.tensors();
    words = f.words();
    for (auto const& t : tensors) {
      auto& one = data.emplace_back(static_cast<std::size_t>(t.bytes()), '\0');
      f.read(t, 0, one.data(), t.bytes());
    }
  }
  void write(std::string const& path) const {
    memfit::tensor_file_writer to(path, tensors, words);
    for (std::size_t i = 0; i < data.size(); ++i) to.write(i, data[i].data(), std::ssize(data[i]));
    to.commit();
  }
  std::size_t index(std::string_view name) const {
    std::size_t i = 0;
    while (i < tensors.size() && tensors[i].name != name) ++i;
    return i;
  }
  template <class E>
  void put(std::string_view name, std::size_t at, E value) {
    std::memcpy(data.at(index(name)).data() + at * sizeof(E), &value, sizeof(E));
  }
  std::string& word(std::string_view key) {
    for (auto& [k, value] : words)
      if (k == key) return value;
    throw std::out_of_range(std::string(key));
  }
};

struct wrong {
  char const* what;
  void (*change)(taken_apart&);
  std::array<std::string_view, 3> said = {};
};

TEST(states, of_something_else_or_of_nothing_change_nothing) {
  test::folder const in;
  split_run trained(1e-2), other(1e-3, 3);
  trained.train(1, 3);
  other.train(1, 1);
  trained.saved(in);
  std::filesystem::rename(in / "saved", in / "good");
  auto const before = other.saved(in);
  constexpr float nan = __builtin_nanf(""), inf = __builtin_huge_valf();
  std::vector<wrong> const table{
      {"rule",
       [](auto& f) { f.word("optimizer.rule") = "lion"; },
       {"optimizer.rule", "'lion'", "'adamw'"}},
      {"column",
       [](auto& f) { f.word("optimizer.parameter") = "fp32"; },
       {"optimizer.parameter", "'fp32'", "'split<bf16>'"}},
      {"layout", [](auto& f) { f.word("optimizer.layout") = "2"; }, {"layout", "'2'", "'1'"}},
      {"tensors", [](auto& f) { f.word("optimizer.tensors") = "2"; }, {"'2'", "'3'"}},
      {"count",
       [](auto& f) { f.word("tensor.b") = "number 2, 36 elements"; },
       {"'number 2, 36 elements'", "'number 2, 37 elements'"}},
      {"order", [](auto& f) { f.word("tensor.b") = "number 1, 37 elements"; }, {"tensor.b"}},
      {"name",
       [](auto& f) { f.tensors[f.index("b.exp_avg")].name = "c.exp_avg"; },
       {"'b.exp_avg'", "not in the file"}},
      {"no_word", [](auto& f) { f.words.clear(); }, {"'optimizer.layout'", "not in its"}},
      {"format",
       [](auto& f) { f.word("format.b.exp_avg") = "dynamic8, block 256, scales F32"; },
       {"format.b.exp_avg", "'dynamic8", "'fp32'"}},
      {"type",
       [](auto& f) { f.tensors[f.index("b.exp_avg")].type = stored_type::i32; },
       {"'b.exp_avg'", "I32 [37]", "F32 [37]"}},
      {"shape",
       [](auto& f) {
         f.tensors[f.index("b.exp_avg")].shape = {37, 1};
       },
       {"'b.exp_avg'", "[37,1]", "[37]"}},
      {"kept",
       [](auto& f) { f.tensors[f.index("b.kept")].type = stored_type::bf16; },
       {"'b.kept'", "BF16", "U16"}},
      {"steps", [](auto& f) { f.put("b.step", 0, std::int64_t{-1}); }, {"'b.step'", "-1 steps"}},
      {"lr",
       [](auto& f) { f.word("optimizer.rule.0.lr") = "-1"; },
       {"optimizer.rule.0.lr", "range"}},
      {"nan_lr", [](auto& f) { f.word("optimizer.rule.0.lr") = "nan"; }, {"optimizer.rule.0.lr"}},
      {"no_number", [](auto& f) { f.word("optimizer.rule.0.beta1") = "0.9x"; }, {"'0.9x'"}},
      {"comma", [](auto& f) { f.word("optimizer.rule.0.beta1") = "0,9"; }, {"'0,9'"}},
      {"empty_number", [](auto& f) { f.word("optimizer.rule.0.eps") = ""; }, {"rule.0.eps"}},
      {"group", [](auto& f) { f.word("group.b") = "1"; }, {"group.b", "'1'", "below 1"}},
      {"no_group", [](auto& f) { f.word("group.b") = "0, molten"; }, {"group.b", "molten"}},
      {"seed", [](auto& f) { f.word("optimizer.seed") = "-1"; }, {"optimizer.seed", "'-1'"}},
      {"nan_moment", [](auto& f) { f.put("b.exp_avg", 36, nan); }, {"'b.exp_avg'", "36", "code"}},
      {"infinite", [](auto& f) { f.put("b.exp_avg_sq", 3, inf); }, {"'b.exp_avg_sq'", "3"}},
      {"below_zero", [](auto& f) { f.put("b.exp_avg_sq", 0, -1.0f); }, {"'b.exp_avg_sq'", "0"}},
      {"nan_scale",
       [](auto& f) { f.put("h.0.w \"\xc3\xa9\".exp_avg.scales", 3, nan); },
       {".scales'", "block 3"}},
      {"infinite_scale",
       [](auto& f) { f.put("h.0.w \"\xc3\xa9\".exp_avg.scales", 0, inf); },
       {".scales'", "block 0"}},
      {"negative_scale",
       [](auto& f) { f.put("h.0.w \"\xc3\xa9\".exp_avg_sq.scales", 1, -1e-30f); },
       {".scales'", "block 1"}},
      {"nan_code",
       [](auto& f) { f.put("h.0.w \"\xc3\xa9\".exp_avg.codes", 999, '\x7f'); },
       {".codes'", "999", "code"}},
  };
  for (auto const& [what, change, said] : table) {
    SCOPED_TRACE(what);
    taken_apart f(in / "good");
    change(f);
    f.write(in / "bad");
    test::expect_refusal<file_error>([&] { memfit::load_state(in / "bad", other.opt); },
                                     {said[0], said[1], said[2]});
    EXPECT_TRUE(other.saved(in) == before);
  }
  test::expect_refusal<file_error>([&] { memfit::load_state(in / "none", other.opt); }, {"none"});
  memfit::load_state(in / "good", other.opt);
  EXPECT_TRUE(other.saved(in) == test::content(in / "good"));
}

TEST(states, no_mutation_is_taken_in_part) {
  test::folder const in;
  split_run trained(1e-2), other(1e-3, 3);
  trained.train(1, 2);
  auto const good = trained.saved(in), before = other.saved(in);
  test::write(in / "before", before);
  std::mt19937 random(3);
  int taken = 0;
  for (int round = 1; round <= 1500; ++round) {
    auto file = good;
    auto const at = random() % file.size();
    if (round % 3 == 0)
      file.erase(at, 1 + random() % 4);
    else if (round % 3 == 1)
      file[at] = static_cast<char>(random());
    else
      file.resize(at);
    test::write(in / "f", file);
    try {
      memfit::load_state(in / "f", other.opt);
      ++taken;
      memfit::load_state(in / "before", other.opt);
    } catch (file_error const&) {
    }
    if (round % 50 == 0) {
      ASSERT_TRUE(other.saved(in) == before) << round;
    }
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 500);
}

TEST(states, convert_between_blocks_and_formats_through_fp32) {
  test::folder const in;
  split_run narrow(1e-2), again(1e-2);
  narrow.train(1, 3);
  narrow.saved(in);
  taken_apart f(in / "saved");
  std::string const w = "h.0.w \"\xc3\xa9\".exp_avg_sq";
  f.word("format." + w) = "float8, block 512, scales F32";
  auto const scales = f.index(w + ".scales");
  f.tensors[scales].shape = {2};
  f.data[scales].resize(8);
  f.write(in / "f");
  test::expect_refusal<file_error>([&] { memfit::load_state(in / "f", again.opt); },
                                   {"block 512", "block 256"});
  memfit::load_state(in / "f", memfit::states(again.opt, {.convert = true}));
  auto const found = again.opt.moment_sync(0, 1);
  EXPECT_GT(*std::max_element(found.begin(), found.end()), 0);
  EXPECT_EQ(again.opt.moment_sync(0, 0), narrow.opt.moment_sync(0, 0));
  for (char const* text : {"float9, block 512, scales F32", "float8, block 500, scales F32",
                           "float8, block 512, scales F64", "float8", "fp32, block 512, scales F32",
                           "float8, scales F32, block 512", ""}) {
    f.word("format." + w) = text;
    f.write(in / "f");
    EXPECT_THROW(memfit::load_state(in / "f", memfit::states(again.opt, {.convert = true})),
                 file_error)
        << text;
    EXPECT_EQ(again.opt.moment_sync(0, 1), found);
  }
}

TEST(states, convert_refuses_what_the_format_cannot_hold) {
  test::folder const in;
  std::vector<float> w(20, 1.0f);
  auto const refs = std::vector{memfit::tensor_ref<float>(w.data(), 20, "w")};
  memfit::optimizer<memfit::momentum, memfit::fp16> opt(memfit::host{1}, {}, refs,
                                                        {.min_quantized = 1});
  opt.keep_fp32("w");
  memfit::save_state(in / "f", opt);
  taken_apart f(in / "f");
  f.put("w.momentum_buffer", 19, 65520.0f);
  f.write(in / "f");
  memfit::optimizer<memfit::momentum, memfit::fp16> narrow(memfit::host{1}, {}, refs,
                                                           {.min_quantized = 1});
  test::expect_refusal<file_error>(
      [&] { memfit::load_state(in / "f", memfit::states(narrow, {.convert = true})); },
      {"'w.momentum_buffer'", "19", "65520", "'fp16'"});
  f.put("w.momentum_buffer", 19, 65519.0f);
  f.write(in / "f");
  memfit::load_state(in / "f", memfit::states(narrow, {.convert = true}));
  EXPECT_EQ(narrow.moment_sync(0, 0)[19], 65504.0f);
}

}  // namespace
