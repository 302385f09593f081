// What the optimizer says it holds: bytes by formula, formats by threshold and by name.
// n at and around the threshold, block sizes, columns with hidden parts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "optimizer/model.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::blocked, memfit::dynamic8, memfit::float8;

constexpr std::int64_t lengths[] = {0, 1, 255, 256, 257, 4095, 4096, 100'000};

std::int64_t blocks(std::int64_t n, std::int64_t block) {
  return (n + block - 1) / block;
}

/// One tensor of every length: per slot n codes and, where coded, a scale per block.
template <class Rule, class Format, class Column = memfit::fp32>
void holds(std::int64_t per_code, std::int64_t block, std::int64_t kept_per_element) {
  using model = test::model<Rule, Format, Column>;
  test::vectors start;
  for (auto n : lengths) start.emplace_back(static_cast<std::size_t>(n), 1.0f);
  model m(memfit::host{1}, Rule{}, start, 1);
  auto const report = m.optimizer().describe();
  std::int64_t total = 0, parameters = 0, kept = 0;
  ASSERT_EQ(report.tensors.size(), std::size(lengths));
  for (std::size_t i = 0; i < std::size(lengths); ++i) {
    auto const n = lengths[i];
    auto const scales = block == 0 ? 0 : 4 * blocks(n, block);
    auto const expected = model::slots * (per_code * n + scales);
    EXPECT_EQ(report.tensors[i].state_bytes, expected) << "n = " << n;
    EXPECT_EQ(report.tensors[i].count, n);
    EXPECT_EQ(report.tensors[i].name, std::string("t").append(std::to_string(i)));
    EXPECT_EQ(report.tensors[i].parameter_bytes, n * std::int64_t{sizeof(typename model::element)});
    EXPECT_EQ(m.optimizer().steps_sync(i), 0);
    EXPECT_EQ(report.tensors[i].kept_bytes, kept_per_element * n);
    EXPECT_EQ(report.tensors[i].quantized, n > 0);
    parameters += report.tensors[i].parameter_bytes;
    kept += report.tensors[i].kept_bytes;
    total += expected;
  }
  EXPECT_EQ(report.state_bytes, total);
  EXPECT_EQ(report.parameter_bytes, parameters);
  EXPECT_EQ(report.kept_bytes, kept);
}

TEST(memory, is_what_the_formula_says) {
  holds<memfit::adamw, memfit::fp32>(4, 0, 0);
  holds<memfit::adamw, memfit::bf16>(2, 0, 0);
  holds<memfit::adamw, dynamic8>(1, 256, 0);
  holds<memfit::adamw, float8>(1, 256, 0);
  holds<memfit::momentum, dynamic8>(1, 256, 0);
}

TEST(memory, counts_what_a_column_hides) {
  holds<memfit::adamw, float8, memfit::bf16>(1, 256, 0);
  holds<memfit::adamw, float8, memfit::split<memfit::bf16>>(1, 256, 2);
  holds<memfit::adamw, float8, memfit::corrected<memfit::bf16>>(1, 256, 1);
  holds<memfit::adamw, float8, memfit::master<memfit::fp16>>(1, 256, 4);
}

TEST(memory, another_block_size) {
  using blocked64 = blocked<float8, 64>;
  test::model<memfit::adamw, blocked64> m(memfit::host{1}, {}, {std::vector<float>(1000, 1.0f)}, 1);
  EXPECT_EQ(m.optimizer().describe().state_bytes, 2 * (1000 + 4 * 16));
}

TEST(memory, the_threshold_is_4096_elements_unless_told_otherwise) {
  std::vector<float> below(4095), at(4096);
  memfit::optimizer<memfit::adamw, float8> opt(
      memfit::host{1}, {},
      std::vector<memfit::tensor_ref<float>>{{below.data(), 4095, "below"},
                                             {at.data(), 4096, "at"}});
  auto const report = opt.describe();
  EXPECT_FALSE(report.tensors[0].quantized);
  EXPECT_EQ(report.tensors[0].state_bytes, 2 * 4 * 4095);
  EXPECT_TRUE(report.tensors[1].quantized);
  EXPECT_EQ(report.tensors[1].state_bytes, 2 * (4096 + 4 * 16));
}

TEST(memory, moments_kept_in_fp32_later_on_keep_their_values) {
  auto const start = test::make_input(test::kind::normal, 1000, 1);
  test::model<memfit::adamw, float8> m(memfit::host{1}, {}, {start});
  m.optimizer().step(test::vectors{test::make_input(test::kind::normal, 1000, 2)});
  auto const first = m.optimizer().moment_sync(0, 0), second = m.optimizer().moment_sync(0, 1);
  m.optimizer().keep_fp32("t0");
  EXPECT_EQ(m.optimizer().moment_sync(0, 0), first);
  EXPECT_EQ(m.optimizer().moment_sync(0, 1), second);
  EXPECT_EQ(m.optimizer().describe().state_bytes, 2 * 4 * 1000);
  EXPECT_EQ(m.optimizer().steps_sync(0), 1);
  m.optimizer().step(test::vectors{test::make_input(test::kind::normal, 1000, 3)});
  EXPECT_EQ(m.optimizer().steps_sync(0), 2);
}

/// A parameter after three steps, as it is read in two parts; and as the model sees it.
template <class Column>
struct stepped {
  std::vector<float> known, seen;

  stepped() {
    std::vector<float> start(1000);
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = 0.5f + float(i % 64) / 128.0f;
    test::model<memfit::adamw, float8, Column> m(memfit::host{1}, {.lr = 1e-3}, {{1.0f}, start});
    for (int step = 0; step < 3; ++step)
      m.optimizer().step(
          test::vectors{{0.0f}, test::make_input(test::kind::normal, 1000, 4 + step)});
    known = m.optimizer().parameter_sync(1, 0, 700);
    for (float const x : m.optimizer().parameter_sync(1, 700, 300)) known.push_back(x);
    seen = m.parameter(1);
  }
};

TEST(parameter_sync, has_what_a_column_hides) {
  stepped<memfit::fp32> const exact;
  EXPECT_EQ(exact.known, exact.seen);
  EXPECT_EQ(stepped<memfit::split<memfit::bf16>>{}.known, exact.known);
  EXPECT_EQ(stepped<memfit::master<memfit::fp16>>{}.known, exact.known);
  stepped<memfit::bf16> const rounded;
  EXPECT_EQ(rounded.known, rounded.seen);
  stepped<memfit::corrected<memfit::bf16>> const corrected;
  EXPECT_NE(corrected.known, corrected.seen);
  for (std::size_t i = 0; i < exact.known.size(); ++i)
    EXPECT_NEAR(corrected.known[i], exact.known[i], 3 * 0x1p-16f) << i;
}

TEST(parameter_sync, refuses_what_is_not_there) {
  test::model<memfit::adamw, float8> m(memfit::host{1}, {}, {std::vector<float>(10, 1.0f)});
  auto& opt = m.optimizer();
  EXPECT_TRUE(opt.parameter_sync(0, 10, 0).empty());
  test::expect_refusal<memfit::argument_error>([&] { opt.parameter_sync(0, 8, 3); },
                                               {"parameter_sync", "t0", "8 + 3 of 10"});
  test::expect_refusal<memfit::argument_error>([&] { opt.parameter_sync(0, -1, 1); }, {"t0", "-1"});
  test::expect_refusal<memfit::argument_error>([&] { opt.parameter_sync(0, 1, -1); }, {"t0", "-1"});
  test::expect_refusal<memfit::argument_error>([&] { opt.parameter_sync(1, 0, 0); }, {"1"});
}

TEST(memory, is_told_in_a_table_that_names_every_tensor) {
  test::model<memfit::adamw, float8> m(memfit::host{1}, {},
                                       {std::vector<float>(1000), std::vector<float>(10)}, 100);
  auto const text = m.optimizer().describe().text();
  for (auto part : {"t0", "t1", "quantized", "fp32", "1000", "2032", "80", "total", "2112"})
    EXPECT_NE(text.find(part), text.npos) << part << " is not in:\n" << text;
}

}  // namespace
