// What the estimate says of an optimizer of one tensor. Used by tests that hold against it what an
// optimizer describes.
#pragma once

#include <gtest/gtest.h>

#include "memfit/cost.hpp"
#include "memfit/fit/estimate.hpp"

namespace test {

/// Compares to the byte.
template <class Rule, class Format, class Column>
void is_as_estimated(memfit::description const& d, std::int64_t min_quantized) {
  namespace fit = memfit::fit;
  fit::model const m{.name = "one tensor",
                     .stages = {{"all", {{"t", d.tensors.at(0).count}}}},
                     .chain = [](auto&&...) { return memfit::checkpoint::chain(1); }};
  auto states = memfit::cost_of<Rule, Format>();
  states.min_quantized = min_quantized;
  auto const b =
      fit::estimate(m, {.column = memfit::cost_of_column<Column>(), .states = std::move(states)});
  EXPECT_EQ(b.parameters, d.parameter_bytes);
  EXPECT_EQ(b.kept, d.kept_bytes);
  EXPECT_EQ(b.states(), d.state_bytes);
  EXPECT_EQ(b.workspace, d.shared_bytes);
}

}  // namespace test
