// The states of what lies between backward passes and steps: a loss scale, sums and past norms go
// on where they were, and hostile numbers change nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/state_file.hpp"
#include "support/files.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::file_error;

/// A file of these words and tensors of doubles and integers.
void write_file(std::string const& path, memfit::stored_words const& words,
                std::string const& name = {}, std::vector<double> const& values = {}) {
  std::vector<memfit::stored_tensor> tensors;
  if (!name.empty()) tensors.push_back({name, memfit::stored_type::f64, {std::ssize(values)}});
  memfit::tensor_file_writer to(path, tensors, words);
  if (!name.empty()) to.write(0, values.data(), std::ssize(values) * 8);
  to.commit();
}

TEST(window_states, a_loss_scale_goes_on) {
  test::folder const in;
  memfit::host const exec{1};
  memfit::loss_scaler_options const o{
      .initial = 1000, .growth = 1.7, .interval = 3, .hysteresis = 2};
  memfit::loss_scaler trained(exec, o), resumed(exec);
  trained.load({o, 1234.567f, 2, 1, std::int64_t{1} << 40});
  memfit::save_state(in / "f", trained);
  memfit::load_state(in / "f", resumed);
  memfit::save_state(in / "g", resumed);
  EXPECT_TRUE(test::content(in / "f") == test::content(in / "g"));
  auto const s = resumed.state_sync();
  EXPECT_EQ(s.scale, 1234.567f);
  EXPECT_EQ(s.options.growth, 1.7);
  EXPECT_EQ(s.skipped, std::int64_t{1} << 40);
}

TEST(window_states, a_hostile_loss_scale_is_refused) {
  test::folder const in;
  memfit::loss_scaler scaler(memfit::host{1});
  memfit::save_state(in / "f", scaler);
  memfit::tensor_file const good(in / "f");
  auto const before = test::content(in / "f");
  for (auto const& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"scale", "nan"},
                                                        {"scale", "1e39"},
                                                        {"scale", "0"},
                                                        {"growth", "0.5"},
                                                        {"backoff", "-1"},
                                                        {"interval", "0"},
                                                        {"interval", "2147483648"},
                                                        {"hysteresis", "1.5"},
                                                        {"tolerance", "2"},
                                                        {"clean", "-1"},
                                                        {"skipped", ""}}) {
    auto words = good.words();
    for (auto& [k, text] : words)
      if (k == "scaler." + key) text = value;
    write_file(in / "bad", words);
    test::expect_refusal<file_error>([&] { memfit::load_state(in / "bad", scaler); },
                                     {"scaler." + key, "'" + value + "'"});
  }
  memfit::save_state(in / "after", scaler);
  EXPECT_TRUE(test::content(in / "after") == before);
}

TEST(window_states, no_scale_is_taken_within_a_window) {
  test::folder const in;
  memfit::loss_scaler scaler(memfit::host{1});
  memfit::norm_clipper clipper(memfit::host{1});
  double const norm = 1;
  clipper.limit(&norm, {}, 2);
  memfit::save_state(in / "f", clipper, scaler);
  double const other = 3;
  clipper.limit(&other, {}, 2);
  scaler.unscale(&norm);
  EXPECT_THROW(memfit::load_state(in / "f", clipper, scaler), memfit::order_error);
  EXPECT_EQ(clipper.norm_sync(), 3);
}

TEST(window_states, past_norms_go_on_in_their_order) {
  test::folder const in;
  for (int const steps : {0, 1, 7, 100, 101, 250}) {
    memfit::norm_clipper trained(memfit::host{1}), resumed(memfit::host{1});
    auto const clip = [](memfit::norm_clipper& c, double norm) {
      return *c.percentile(&norm, {}, 30).multiplier;
    };
    for (int i = 0; i < steps; ++i) clip(trained, 1 + i * 37 % 11);
    for (int i = 0; i < 3; ++i) clip(resumed, 1e9);
    memfit::save_state(in / "f", trained);
    memfit::load_state(in / "f", resumed);
    memfit::save_state(in / "g", resumed);
    EXPECT_TRUE(test::content(in / "f") == test::content(in / "g")) << steps;
    EXPECT_EQ(trained.norm_sync(), resumed.norm_sync());
    for (int i = 0; i < 120; ++i)
      ASSERT_EQ(clip(trained, 1 + i * 17 % 13), clip(resumed, 1 + i * 17 % 13)) << steps;
  }
}

TEST(window_states, hostile_norms_are_refused) {
  test::folder const in;
  memfit::norm_clipper clipper(memfit::host{1});
  double const inf = __builtin_huge_val();
  for (auto const& norms : std::vector<std::vector<double>>{
           {}, std::vector<double>(102, 1.0), {1, -1}, {1, 2, inf}, {1, inf - inf}}) {
    write_file(in / "bad", {}, "clipper.norms", norms);
    test::expect_refusal<file_error>([&] { memfit::load_state(in / "bad", clipper); },
                                     {"'clipper.norms'"});
    EXPECT_THROW(clipper.load(norms), memfit::argument_error);
  }
  write_file(in / "last", {}, "clipper.norms", {inf});
  memfit::load_state(in / "last", clipper);
  EXPECT_EQ(clipper.norm_sync(), inf);
}

TEST(window_states, noisy_sums_go_on) {
  test::folder const in;
  using sums = memfit::gradient_accumulator<memfit::stochastic<memfit::bf16>>;
  std::vector<std::vector<float>> const g{test::make_input(test::kind::normal, 999, 1)};
  sums trained(memfit::host{1}, g, {.seed = 4}), resumed(memfit::host{1}, g, {.seed = 4});
  auto const window = [&](sums& s) {
    for (int i = 1; i <= 3; ++i) s.add(g, i);
    s.close();
    return test::bytes_of(std::vector(s.begin()->data, s.begin()->data + 999));
  };
  window(trained);
  memfit::save_state(in / "f", trained);
  memfit::load_state(in / "f", resumed);
  auto const expected = window(trained);
  EXPECT_EQ(window(resumed), expected);
  EXPECT_NE(window(resumed), expected);
  resumed.add(g, 1);
  EXPECT_THROW(memfit::save_state(in / "g", resumed), memfit::order_error);
  EXPECT_THROW(memfit::load_state(in / "f", resumed), memfit::order_error);
}

}  // namespace
