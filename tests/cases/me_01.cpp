// ME-01: a memory estimator counted bytes per parameter wrongly. Here: what describe() says of
// every kind of slots, state format and parameter column is what the executor gave out, to the
// byte, and what the estimate says before.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/estimated.hpp"
#include "support/formats.hpp"
#include "support/plain_executor.hpp"

namespace {

using namespace memfit;

TEST(ME_01, a_what_data_parallel_ranks_divide_of_a_billion_parameters) {
  constexpr std::int64_t count = 1'000'000'000;
  fit::model const m{.name = "one tensor",
                     .stages = {{"all", {{"t", count}}}},
                     .chain = [](auto&&...) { return checkpoint::chain(1); }};
  fit::training t{.batch = 2,
                  .column = cost_of_column<master<bf16>>(),
                  .states = cost_of<adam, fp32>(),
                  .accumulation = fit::accumulation::fp32};
  t.ranks = {.data = 8, .zero_stage = 2};
  auto const b = fit::estimate(m, t);
  EXPECT_EQ(b.parameters, 2 * count);
  EXPECT_EQ(b.total() - b.workspace - b.communication, 2 * count + 18 * count / 8);
}

TEST(ME_01, b_eight_bit_adam_of_a_million_parameters) {
  std::vector<float> w(1'000'000);
  test::plain_executor const exec;
  auto const states_of = [&](auto format) {
    optimizer<adamw, decltype(format)> opt(exec, {});
    opt.add(tensor_ref<float>{w.data(), 1'000'000, "w"});
    return opt.describe().state_bytes;
  };
  EXPECT_EQ(states_of(dynamic8{}), 2'031'256);
  EXPECT_EQ(states_of(fp32{}), 8'000'000);
}

/// One tensor after the other, quantized and not; memory for 100000 elements at `data`.
template <class Rule, class Format, class Column>
void describes_what_is_allocated(void* data) {
  using element = typename optimizer<Rule, Format, Column>::element;
  SCOPED_TRACE(name_of<Rule>::value() + " in " + name_of<Format>::value() + " with " +
               name_of<Column>::value());
  for (std::int64_t const min_quantized : {std::int64_t{1}, std::int64_t{1} << 40})
    for (std::int64_t const n : {1, 255, 256, 257, 4095, 100'000}) {
      test::plain_executor const exec;
      optimizer<Rule, Format, Column> opt(exec, {}, {.min_quantized = min_quantized});
      auto const empty = exec.memory().bytes;
      EXPECT_EQ(opt.describe().shared_bytes, empty);
      opt.add(tensor_ref<element>{static_cast<element*>(data), n, "t"});
      auto const d = opt.describe();
      EXPECT_EQ(d.kept_bytes + d.state_bytes + d.shared_bytes, exec.memory().bytes) << n;
      EXPECT_EQ(d.tensors[0].parameter_bytes, n * std::int64_t{sizeof(element)});
      EXPECT_EQ(d.tensors[0].kept_bytes + d.tensors[0].state_bytes, d.kept_bytes + d.state_bytes);
      test::is_as_estimated<Rule, Format, Column>(d, min_quantized);
    }
}

/// Every format with this rule, each with the next of the columns.
template <class Rule, std::size_t First, class... Formats, class... Columns>
void in_every_format(void* data, formats<Formats...>, columns<Columns...>) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (describes_what_is_allocated<
         Rule, Formats,
         std::tuple_element_t<(First + I) % sizeof...(Columns), std::tuple<Columns...>>>(data),
     ...);
  }
  (std::index_sequence_for<Formats...>());
}

/// Rules by what they keep; the rows of the optimizer's table ask the same of all others.
TEST(ME_01, c_what_is_described_is_allocated) {
  std::vector<float> data(100'000);
  test::all_formats const every_format;
  test::all_columns const every_column;
  in_every_format<lion, 0>(data.data(), every_format, every_column);
  in_every_format<adamw, 2>(data.data(), every_format, every_column);
  in_every_format<ademamix, 4>(data.data(), every_format, every_column);
  describes_what_is_allocated<sgd, fp32, fp32>(data.data());
}

}  // namespace
