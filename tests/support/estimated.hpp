// What the estimate says of an optimizer of one tensor. Used by tests that hold against it what an
// optimizer describes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "memfit/cost.hpp"
#include "memfit/description.hpp"
#include "memfit/fit/estimate.hpp"

namespace test {

/// Compares to the byte.
inline void is_as_estimated(memfit::description const& d, std::int64_t min_quantized,
                            memfit::fit::column_cost column, memfit::fit::state_cost states) {
  namespace fit = memfit::fit;
  fit::model const m{
      .name = "one tensor",
      .stages = {{"all", {{"t", d.tensors.at(0).count}}}},
      .chain = [](auto const&, auto const&) { return memfit::checkpoint::chain(1); }};
  states.min_quantized = min_quantized;
  auto const b = fit::estimate(m, {.column = std::move(column), .states = std::move(states)});
  EXPECT_EQ(b.parameters, d.parameter_bytes);
  EXPECT_EQ(b.kept, d.kept_bytes);
  EXPECT_EQ(b.states(), d.state_bytes);
  EXPECT_EQ(b.workspace, d.shared_bytes);
}

template <class Rule, class Format, class Column>
void is_as_estimated(memfit::description const& d, std::int64_t min_quantized) {
  is_as_estimated(d, min_quantized, memfit::cost_of_column<Column>(),
                  memfit::cost_of<Rule, Format>());
}

}  // namespace test
