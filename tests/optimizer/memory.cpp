// What the optimizer says it holds: bytes by formula, formats by threshold and by name.
// n at and around the threshold, block sizes, columns with hidden parts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "optimizer/model.hpp"
#include "support/inputs.hpp"

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

TEST(memory, is_told_in_a_table_that_names_every_tensor) {
  test::model<memfit::adamw, float8> m(memfit::host{1}, {},
                                       {std::vector<float>(1000), std::vector<float>(10)}, 100);
  auto const text = m.optimizer().describe().text();
  for (auto part : {"t0", "t1", "quantized", "fp32", "1000", "2032", "80", "total", "2112"})
    EXPECT_NE(text.find(part), text.npos) << part << " is not in:\n" << text;
}

}  // namespace
