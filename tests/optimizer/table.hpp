// One row of the table rule x format x parameter column: against the float64 reference and across
// executors. Used by one .cpp per format, which lists its rows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "optimizer/model.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"
#include "support/reference_of.hpp"
#include "support/table_of.hpp"

namespace test {

using reference::tracked;

/// Hyper-parameters off their defaults, so that no term can hide.
inline constexpr memfit::sgd table_sgd{.lr = 0.05, .weight_decay = 0.1};
inline constexpr memfit::momentum table_momentum{
    .lr = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1};
inline constexpr memfit::momentum table_nesterov{
    .lr = 0.05, .momentum = 0.8, .nesterov = true, .weight_decay = 0.1};
inline constexpr memfit::adam table_adam{
    .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
inline constexpr memfit::adamw table_adamw{
    .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};

inline constexpr int table_steps = 4;
/// The gate's multiplier: not a power of two, so that forgetting to round or to apply it shows.
inline constexpr float table_multiplier = 0.7f / 1024;

/// Every length from 0 to 300 and a few long ones.
inline vectors table_start(kind k, bool with_long) {
  vectors start;
  for (std::int64_t n = 0; n <= 300; ++n)
    start.push_back(make_input(k, n, static_cast<std::uint64_t>(n)));
  if (with_long) {
    start.push_back(make_input(k, 4096, 1));
    start.push_back(make_input(k, 70'001, 2));
  }
  return start;
}

inline vectors table_gradients(vectors const& start, kind k, int step, double scale) {
  vectors gradients;
  for (std::size_t i = 0; i < start.size(); ++i) {
    gradients.push_back(make_input(k, static_cast<std::int64_t>(start[i].size()),
                                   1000 * i + static_cast<std::uint64_t>(step)));
    for (auto& g : gradients.back()) g = static_cast<float>(std::clamp(g * scale, -3.4e38, 3.4e38));
  }
  return gradients;
}

/// A parameter or an unscaled moment as its column keeps it: between the roundings of the two ends
/// of what fp32 arithmetic may give.
template <class Column>
void stored_parameter_is(float got, tracked exact) {
  double const slack = 2 * exact.bound;
  if constexpr (std::is_same_v<Column, memfit::fp32>) {
    ASSERT_LE(std::fabs(double{got} - exact.value), slack) << "expected " << exact.value;
  } else {
    Column const low(static_cast<float>(exact.value - slack));
    Column const high(static_cast<float>(exact.value + slack));
    ASSERT_GE(got, static_cast<float>(low)) << "expected " << exact.value;
    ASSERT_LE(got, static_cast<float>(high)) << "expected " << exact.value;
  }
}

/// The two values of bf16 around x.
template <>
inline void stored_parameter_is<memfit::stochastic<memfit::bf16>>(float got, tracked exact) {
  double const unit = std::ldexp(1, std::ilogb(exact.value) - 7);
  ASSERT_LT(std::fabs(double{got} - exact.value), unit + 2 * exact.bound)
      << "expected " << exact.value;
  ASSERT_EQ(static_cast<float>(memfit::bf16(got)), got);
}

/// One slot of one tensor after a step: block by block, every stored value is the entry of the
/// table nearest to the reference's moment under a scale equal to the block's largest magnitude, up
/// to what fp32 arithmetic may have moved the moment. Above zero stays above zero in a non-negative
/// slot.
template <class Format>
void stored_moments_are(std::vector<float> const& got, std::vector<tracked> const& exact,
                        memfit::range range, reference::table const& table) {
  constexpr auto block = static_cast<std::size_t>(reference::format_of<Format>::block);
  for (std::size_t begin = 0; begin < got.size(); begin += block) {
    auto const end = std::min(got.size(), begin + block);
    double scale = 0, scale_bound = 0;
    for (auto i = begin; i < end; ++i) {
      scale = std::max(scale, std::fabs(exact[i].value));
      scale_bound = std::max(scale_bound, 2 * exact[i].bound);
    }
    for (auto i = begin; i < end; ++i) {
      double const x = exact[i].value, y = double{got[i]};
      bool const keep = range == memfit::range::non_negative && x > 2 * exact[i].bound;
      double nearest = INFINITY, entry = INFINITY;
      for (auto const& e : table) {
        if (keep && e.value == 0) continue;
        nearest = std::min(nearest, std::fabs(x - double{e.value} * scale));
        entry = std::min(entry, std::fabs(y - double{e.value} * scale));
      }
      double const arithmetic = 2 * exact[i].bound + scale_bound + 0x1p-22 * std::fabs(x);
      ASSERT_LE(std::fabs(x - y), nearest + arithmetic)
          << "element " << i << ": " << x << " under scale " << scale << " is kept as " << y;
      ASSERT_LE(entry, scale_bound + 0x1p-23 * std::fabs(y) + 0x1p-149)
          << "element " << i << ": " << y << " is no entry under scale " << scale;
      if (keep) {
        ASSERT_GT(y, 0) << "element " << i << " of a second moment became zero";
      }
    }
  }
}

template <class Format>
void check_moments(std::vector<float> const& got, std::vector<tracked> const& exact,
                   memfit::range range) {
  if constexpr (reference::is_coded<Format>) {
    static reference::table const tables[] = {
        reference::table_of<Format>(memfit::range::any),
        reference::table_of<Format>(memfit::range::non_negative)};
    stored_moments_are<Format>(got, exact, range, tables[range == memfit::range::any ? 0 : 1]);
  } else {
    for (std::size_t i = 0; i < got.size(); ++i) {
      bool const keep = range == memfit::range::non_negative && exact[i].value > 2 * exact[i].bound;
      if (keep) {
        ASSERT_GT(got[i], 0) << "element " << i << " of a second moment became zero";
      }
      if (keep && static_cast<float>(Format(static_cast<float>(exact[i].value))) == 0) continue;
      stored_parameter_is<Format>(got[i], exact[i]);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// The optimizer against the reference, every step started from what memfit had stored before it.
template <class Rule, class Format, class Column = memfit::fp32>
void follows_the_reference(Rule const& rule, kind k) {
  constexpr int slots = model<Rule, Format, Column>::slots;
  auto const start = table_start(kind::normal, false);
  model<Rule, Format, Column> m(memfit::host{1}, rule, start);
  float const multiplier = table_multiplier;
  for (int step = 1; step <= table_steps; ++step) {
    auto const gradients = table_gradients(start, k, step, 1 / double{multiplier});
    vectors before, moments_before[2];
    for (std::size_t i = 0; i < m.size(); ++i) {
      before.push_back(m.parameter(i));
      for (int s = 0; s < slots; ++s) moments_before[s].push_back(m.optimizer().moment(i, s));
    }
    m.optimizer().step(gradients, {.multiplier = &multiplier});
    ASSERT_TRUE(m.intact());
    ASSERT_EQ(m.optimizer().nonfinite_sync(), 0u);
    for (std::size_t i = 0; i < start.size(); ++i) {
      SCOPED_TRACE("step " + std::to_string(step) + ", length " + std::to_string(start[i].size()));
      auto const now = m.parameter(i);
      std::vector<tracked> exact[2];
      for (std::size_t j = 0; j < now.size(); ++j) {
        reference::element<tracked> e{tracked::stored(before[i][j]), {}};
        for (std::size_t s = 0; s < slots; ++s) e.s[s] = tracked::stored(moments_before[s][i][j]);
        reference::of(rule)(e, tracked::stored(gradients[i][j]) * tracked::stored(multiplier),
                            step);
        ASSERT_NO_FATAL_FAILURE(stored_parameter_is<Column>(now[j], e.p)) << "element " << j;
        for (std::size_t s = 0; s < slots; ++s) exact[s].push_back(e.s[s]);
      }
      for (int s = 0; s < slots; ++s) {
        SCOPED_TRACE("slot " + std::to_string(s));
        auto const got = m.optimizer().moment(i, s);
        ASSERT_NO_FATAL_FAILURE(
            check_moments<Format>(got, exact[s], Rule::slots[static_cast<std::size_t>(s)].range));
      }
    }
  }
}

/// The same bits after every step from every number of threads and every vector width.
template <class Rule, class Format, class Column = memfit::fp32>
void same_bits_everywhere(Rule const& rule, kind k) {
  auto const start = table_start(k, true);
  float const multiplier = table_multiplier;
  std::vector<vectors> gradients;
  for (int step = 1; step <= table_steps; ++step)
    gradients.push_back(table_gradients(start, k, step, 1 / double{multiplier}));
  std::vector<std::vector<std::uint8_t>> first;
  for (auto const& host : all_hosts()) {
    model<Rule, Format, Column> m(host.exec, rule, start);
    for (std::size_t step = 0; step < table_steps; ++step) {
      m.optimizer().step(gradients[step], {.multiplier = &multiplier});
      auto bytes = m.bytes();
      if (step == first.size()) first.push_back(bytes);
      ASSERT_TRUE(bytes == first[step]) << host.name << " differs at step " << step + 1;
    }
    ASSERT_TRUE(m.intact()) << host.name;
  }
}

/// The whole row.
template <class Rule, class Format, class Column = memfit::fp32>
void row(Rule const& rule) {
  for (auto k : ordinary_kinds) {
    SCOPED_TRACE(std::string("reference, ") + name_of(k));
    follows_the_reference<Rule, Format, Column>(rule, k);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (auto k : all_kinds) {
    SCOPED_TRACE(std::string("bits, ") + name_of(k));
    same_bits_everywhere<Rule, Format, Column>(rule, k);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace test
