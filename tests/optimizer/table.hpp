// One row of the table rule x format x parameter column: against the float64 reference and across
// executors. Used by one .cpp per format, which lists its rows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "optimizer/given_out.hpp"
#include "optimizer/model.hpp"
#include "support/estimated.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"
#include "support/pace.hpp"
#include "support/reference_of.hpp"
#include "support/table_of.hpp"
#include "support/tracked.hpp"

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

inline constexpr memfit::amsgrad table_amsgrad{
    .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
inline constexpr memfit::amsgradw table_amsgradw{
    .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
inline constexpr memfit::nadam table_nadam{.lr = 0.02,
                                           .beta1 = 0.8,
                                           .beta2 = 0.95,
                                           .eps = 1e-3,
                                           .weight_decay = 0.1,
                                           .momentum_decay = 0.3};
/// Of four steps the last two are rectified.
inline constexpr memfit::radam table_radam{
    .lr = 0.02, .beta1 = 0.8, .beta2 = 0.7, .eps = 1e-3, .weight_decay = 0.1};
inline constexpr memfit::ademamix table_ademamix{.lr = 0.02,
                                                 .beta1 = 0.8,
                                                 .beta2 = 0.95,
                                                 .beta3 = 0.99,
                                                 .alpha = 3,
                                                 .eps = 1e-3,
                                                 .weight_decay = 0.1,
                                                 .alpha_warmup = 3,
                                                 .beta3_warmup = 3};
inline constexpr memfit::rmsprop table_rmsprop{
    .lr = 0.02, .alpha = 0.9, .eps = 1e-3, .weight_decay = 0.1};
inline constexpr memfit::adagrad table_adagrad{
    .lr = 0.02, .lr_decay = 0.3, .eps = 1e-3, .weight_decay = 0.1, .initial_accumulator = 0.3};
inline constexpr memfit::lion table_lion{
    .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1};
inline constexpr memfit::lamb table_lamb{
    .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
inline constexpr memfit::lars table_lars{
    .lr = 0.5, .momentum = 0.8, .weight_decay = 0.1, .trust_coefficient = 0.01, .eps = 1e-3};
inline constexpr memfit::signum table_signum{.lr = 0.02, .momentum = 0.8, .weight_decay = 0.1};

inline constexpr int table_steps = 4;
/// The gate's multiplier: not a power of two, so that forgetting to round or to apply it shows.
inline constexpr float table_multiplier = 0.7f / 1024;

/// Every length from 0 to 300 (slow builds: every 17th and those around a block), and where asked
/// for one that several threads share.
inline vectors table_start(kind k, bool with_long) {
  vectors start;
  for (std::int64_t n = 0; n <= 300; ++n) {
    if (slow_build && n % 17 != 0 && (n < 255 || n > 257)) continue;
    start.push_back(make_input(k, n, static_cast<std::uint64_t>(n)));
  }
  if (with_long) start.push_back(make_input(k, slow_build ? 3001 : 140'001, 1));
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

/// A moment that a step must have stored: exact but for fp32 arithmetic, and how it is to be
/// rounded. Where the gradient is zero, a moment of any sign is rounded toward zero, so that it
/// dies out; a non-negative moment above zero stays above zero. At random it goes either way.
struct expected_moment {
  tracked exact;
  bool toward_zero, keep_positive, at_random;

  double slack() const { return 2 * exact.bound; }
};

/// Distance from x to the nearest entry under a scale that `want` may take, or to the further one
/// of the two around it.
inline double allowed_distance(reference::table const& table, double scale,
                               expected_moment const& want) {
  double const x = want.exact.value;
  auto const by_value = [scale](reference::entry const& e, double y) {
    return double{e.value} * scale < y;
  };
  auto const at = std::lower_bound(table.begin(), table.end(), x, by_value) - table.begin();
  if (want.at_random) {
    double furthest = 0;
    for (auto i = std::max<std::ptrdiff_t>(at - 1, 0); i < std::min(at + 1, std::ssize(table)); ++i)
      furthest = std::fmax(furthest,
                           std::fabs(x - double{table[static_cast<std::size_t>(i)].value} * scale));
    return furthest;
  }
  double nearest = INFINITY;
  for (auto i = std::max<std::ptrdiff_t>(at - 2, 0); i < std::min(at + 2, std::ssize(table)); ++i) {
    double const entry = double{table[static_cast<std::size_t>(i)].value} * scale;
    if (want.keep_positive && entry == 0) continue;
    if (want.toward_zero && std::fabs(entry) > std::fmax(std::fabs(x) - want.slack(), 0)) continue;
    nearest = std::fmin(nearest, std::fabs(x - entry));
  }
  return nearest;
}

/// Whether y is some entry under a scale known up to `slack`.
inline bool is_entry(reference::table const& table, double scale, double slack, double y) {
  for (auto const& e : table)
    if (std::fabs(y - double{e.value} * scale) <=
        slack * std::fabs(double{e.value}) + 0x1p-23 * std::fabs(y) + 0x1p-149)
      return true;
  return false;
}

/// The scale of a block by its largest magnitude.
template <class Format>
double scale_by(memfit::scaling scaling, double largest) {
  if (reference::format_of<Format>::short_scales)
    return reference::bf16_above(static_cast<float>(largest));
  if (scaling == memfit::scaling::largest || largest <= 0) return largest;
  return std::fmax(0x1p-126, std::exp2(std::ceil(std::log2(largest))));
}

/// One slot of one tensor after a step: block by block, every stored value is the entry of the
/// table nearest to the reference's moment under the scale of the block's largest magnitude, up
/// to what fp32 arithmetic may have moved the moment.
template <class Format>
void coded_moments_are(std::vector<float> const& got, std::vector<expected_moment> const& want,
                       reference::table const& table, memfit::scaling scaling) {
  constexpr auto block = static_cast<std::size_t>(reference::format_of<Format>::block);
  for (std::size_t begin = 0; begin < got.size(); begin += block) {
    auto const end = std::min(got.size(), begin + block);
    double largest = 0, scale_slack = 0;
    for (auto i = begin; i < end; ++i) {
      largest = std::fmax(largest, std::fabs(want[i].exact.value));
      scale_slack = std::fmax(scale_slack, want[i].slack());
    }
    // Which power of two, if it is one, hangs on the fp32 arithmetic.
    double const scale = scale_by<Format>(scaling, largest - scale_slack),
                 other = scale_by<Format>(scaling, largest + scale_slack);
    for (auto i = begin; i < end; ++i) {
      double const x = want[i].exact.value, y = double{got[i]};
      double const arithmetic = want[i].slack() + scale_slack + 0x1p-22 * std::fabs(x) + 0x1p-149;
      ASSERT_LE(std::fabs(x - y), std::fmax(allowed_distance(table, scale, want[i]),
                                            allowed_distance(table, other, want[i])) +
                                      arithmetic)
          << "element " << i << ": " << x << " under scale " << scale << " is kept as " << y;
      if (want[i].toward_zero) {
        ASSERT_LE(std::fabs(y), std::fabs(x) + arithmetic)
            << "element " << i << " without gradient grew away from zero";
      }
      if (want[i].keep_positive) {
        ASSERT_GT(y, 0) << "element " << i << " of a second moment became zero";
      }
      if (i % 16 == 0) {
        ASSERT_TRUE(is_entry(table, scale, scale_slack, y) ||
                    is_entry(table, other, scale_slack, y))
            << "element " << i << ": " << y << " is no entry under scale " << scale;
      }
    }
  }
}

/// The same for formats without scales.
template <class Format>
void unscaled_moment_is(float got, expected_moment const& want) {
  if (want.keep_positive) {
    ASSERT_GT(got, 0) << "a second moment became zero";
    if (static_cast<float>(Format(static_cast<float>(want.exact.value))) == 0) return;
  }
  if (want.toward_zero && !std::is_same_v<Format, memfit::fp32>) {
    double const unit = std::ldexp(
        1, std::max(std::ilogb(want.exact.value) - (std::is_same_v<Format, memfit::bf16> ? 7 : 10),
                    std::is_same_v<Format, memfit::bf16> ? -133 : -24));
    double const x = std::fabs(want.exact.value), y = std::fabs(double{got});
    ASSERT_LE(y, x + want.slack()) << "grew away from zero";
    ASSERT_GT(y, x - unit - want.slack());
    ASSERT_TRUE(got == 0 || std::signbit(got) == std::signbit(want.exact.value));
  } else {
    stored_parameter_is<Format>(got, want.exact);
  }
}

template <class Format>
void check_moments(std::vector<float> const& got, std::vector<expected_moment> const& want,
                   memfit::slot const& slot) {
  if constexpr (reference::is_coded<Format>) {
    static reference::table const tables[] = {
        reference::table_of<Format>(memfit::range::any),
        reference::table_of<Format>(memfit::range::non_negative)};
    coded_moments_are<Format>(got, want, tables[slot.range == memfit::range::any ? 0 : 1],
                              slot.scaling);
  } else {
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(unscaled_moment_is<Format>(got[i], want[i])) << "element " << i;
  }
}

/// fp16 holds magnitudes up to 65504 only: what meets it is smaller.
template <class Format, class Column>
inline constexpr double reach =
    std::is_same_v<Format, memfit::fp16>                                     ? 1.0 / 16384
    : std::is_same_v<typename element_of_column<Column>::type, memfit::fp16> ? 1.0 / 256
                                                                             : 1.0;

template <class Format, int... S>
void check_slots(std::vector<float> const (&got)[3], std::vector<expected_moment> const (&want)[3],
                 auto const& slots, std::integer_sequence<int, S...>) {
  [[maybe_unused]] auto const one = [&]<int I>(std::integral_constant<int, I>) {
    SCOPED_TRACE("slot " + std::to_string(I));
    check_moments<memfit::slot_format<Format, I>>(got[I], want[I], slots[std::size_t{I}]);
  };
  (one(std::integral_constant<int, S>{}), ...);
}

/// Whether each slot of Format that a rule keeps is rounded at random.
template <class Rule, class Format, int... S>
std::array<bool, 3> random_slots(std::integer_sequence<int, S...>) {
  return {reference::is_random<memfit::slot_format<Format, S>>(Rule::slots[S].range)...};
}

/// The optimizer against the reference, every step started from what memfit had stored before it.
/// `Stored` is Format, or fp32 to keep the moments of all tensors so.
template <class Rule, class Format, class Column = memfit::fp32, class Stored = Format>
void follows_the_reference(Rule const& rule, kind k) {
  constexpr int slots = model<Rule, Format, Column>::slots;
  constexpr auto all_slots = std::make_integer_sequence<int, slots>();
  auto const at_random = random_slots<Rule, Stored>(all_slots);
  auto const start = table_start(kind::normal, false);
  model<Rule, Format, Column> m(memfit::host{1}, rule, start,
                                std::is_same_v<Stored, Format> ? 1 : std::int64_t{1} << 40);
  float const multiplier = table_multiplier;
  for (int step = 1; step <= table_steps; ++step) {
    auto const gradients =
        table_gradients(start, k, step, reach<Stored, Column> / double{multiplier});
    vectors before, moments_before[3];
    for (std::size_t i = 0; i < m.size(); ++i) {
      before.push_back(m.parameter(i));
      for (int s = 0; s < slots; ++s) moments_before[s].push_back(m.optimizer().moment_sync(i, s));
    }
    m.optimizer().step(gradients, {.multiplier = &multiplier});
    ASSERT_TRUE(m.intact());
    ASSERT_EQ(m.optimizer().nonfinite_sync(), 0u);
    for (std::size_t i = 0; i < start.size(); ++i) {
      SCOPED_TRACE("step " + std::to_string(step) + ", length " + std::to_string(start[i].size()));
      auto const now = m.parameter(i);
      std::vector<reference::element<tracked>> exact;
      std::vector<tracked> g;
      for (std::size_t j = 0; j < now.size(); ++j) {
        auto& e = exact.emplace_back();
        e.p = tracked::stored(before[i][j]);
        for (std::size_t s = 0; s < slots; ++s) e.s[s] = tracked::stored(moments_before[s][i][j]);
        g.push_back(tracked::stored(gradients[i][j]) * tracked::stored(multiplier));
      }
      reference::take_step(reference::of(rule), exact, g, step);
      std::vector<expected_moment> want[3];
      for (std::size_t j = 0; j < now.size(); ++j) {
        auto const& e = exact[j];
        ASSERT_NO_FATAL_FAILURE(stored_parameter_is<Column>(now[j], e.p)) << "element " << j;
        for (std::size_t s = 0; s < slots; ++s) {
          bool const any = Rule::slots[s].range == memfit::range::any;
          want[s].push_back({e.s[s], any && !at_random[s] && gradients[i][j] * multiplier == 0,
                             !any && e.s[s].value > 2 * e.s[s].bound, at_random[s]});
        }
      }
      std::vector<float> got[3];
      for (int s = 0; s < slots; ++s) got[s] = m.optimizer().moment_sync(i, s);
      ASSERT_NO_FATAL_FAILURE(check_slots<Stored>(got, want, Rule::slots, all_slots));
    }
  }
}

/// What the optimizer says it holds is what the executor gave out and what was estimated.
template <class Rule, class Format, class Column>
void describes_what_is_allocated() {
  for (std::int64_t const n : {1, 255, 256, 257, 4095, 100'000}) {
    auto const before = memory_given_out();
    model<Rule, Format, Column> m(memfit::host{1}, Rule{},
                                  {std::vector<float>(static_cast<std::size_t>(n), 1.0f)});
    auto const d = m.optimizer().describe();
    EXPECT_EQ(d.kept_bytes + d.state_bytes + d.shared_bytes, memory_given_out() - before) << n;
    is_as_estimated<Rule, Format, Column>(d, 1);
  }
}

/// The same bits after every step from every vector width and, on long tensors, every number of
/// threads.
template <class Rule, class Format, class Column = memfit::fp32>
void same_bits_everywhere(Rule const& rule, kind k) {
  bool const with_long = k == kind::lognormal;
  auto const start = table_start(k, with_long);
  float const multiplier = table_multiplier;
  std::vector<vectors> gradients;
  for (int step = 1; step <= table_steps; ++step)
    gradients.push_back(table_gradients(start, k, step, 1 / double{multiplier}));
  std::vector<std::vector<std::uint8_t>> first;
  for (auto const& host : all_hosts()) {
    if (host.exec.threads() > 1 && !with_long) continue;
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

template <class Rule>
bool squares() {
  return std::any_of(Rule::slots.begin(), Rule::slots.end(),
                     [](memfit::slot const& s) { return s.range == memfit::range::non_negative; });
}

/// The whole row.
template <class Rule, class Format, class Column = memfit::fp32>
void row(Rule const& rule) {
  describes_what_is_allocated<Rule, Format, Column>();
  std::vector<kind> kinds(std::begin(ordinary_kinds), std::end(ordinary_kinds));
  // Squares of these vanish, but a rule that squares nothing must get them right.
  if (!squares<Rule>()) kinds.insert(kinds.end(), {kind::tiny, kind::subnormal});
  for (auto k : kinds) {
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

/// The longest step relative to lr that an element takes while gradients of many sizes come, stop
/// and come again. No eps shortens it.
template <class Rule, class Format>
double longest_step(Rule rule, std::int64_t min_quantized) {
  constexpr std::size_t count = 1024;
  rule.weight_decay = 0;
  if constexpr (requires { rule.eps; }) rule.eps = 0;
  model<Rule, Format> m(memfit::host{1}, rule, {std::vector<float>(count, 0.0f)}, min_quantized);
  double longest = 0;
  for (std::size_t step = 1; step <= 400; ++step) {
    auto g = make_input(kind::normal, count, step);
    for (std::size_t i = 0; i < count; ++i)
      g[i] *= step / (1 + i % 101) % 3 == 1 ? 0.0f : std::exp2(-static_cast<float>(i % 37));
    auto const before = m.parameter(0);
    m.optimizer().step_one(0, g);
    auto const after = m.parameter(0);
    for (std::size_t i = 0; i < count; ++i)
      longest = std::fmax(longest, std::fabs(double{after[i]} - double{before[i]}) / rule.lr);
  }
  return longest;
}

/// The whole row, and the same optimizer where it keeps moments in fp32; quantized moments lengthen
/// no step much.
template <class Rule, class Format, class Column = memfit::fp32>
void row_and_fp32(Rule const& rule) {
  if constexpr (std::is_same_v<Column, memfit::fp32>) {
    double const quantized = longest_step<Rule, Format>(rule, 1),
                 exact = longest_step<Rule, Format>(rule, 1 << 20);
    EXPECT_LE(quantized, 2 * exact) << "of a step that fp32 moments make";
  }
  row<Rule, Format, Column>(rule);
  for (auto k : ordinary_kinds) {
    SCOPED_TRACE(std::string("fp32, ") + name_of(k));
    follows_the_reference<Rule, Format, Column, memfit::fp32>(rule, k);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// A column that hides a part of its values from the model takes the same steps as fp32 parameters
/// do that are rounded after each as the column rounds.
template <class Rule, class Format, class Column>
void hidden_row(Rule const& rule) {
  using column = memfit::column_for<Column>;
  using narrow = typename column::element;
  describes_what_is_allocated<Rule, Format, Column>();
  for (auto k : ordinary_kinds) {
    auto start = table_start(k, false);
    for (auto& values : start)
      for (auto& x : values) x = static_cast<float>(narrow(x));
    model<Rule, Format, Column> hidden(memfit::host{1}, rule, start);
    model<Rule, Format> plain(memfit::host{1}, rule, start);
    for (int step = 1; step <= table_steps; ++step) {
      auto const gradients = table_gradients(start, k, step, reach<Format, Column>);
      hidden.optimizer().step(gradients);
      plain.optimizer().step(gradients);
      for (std::size_t i = 0; i < plain.size(); ++i) {
        for (int s = 0; s < model<Rule, Format>::slots; ++s)
          ASSERT_EQ(hidden.optimizer().moment_sync(i, s), plain.optimizer().moment_sync(i, s));
        for (std::int64_t j = 0; j < plain.tensor(i).count(); ++j) {
          auto const code = column::encode(plain.tensor(i)[j], 0u);
          ASSERT_EQ(hidden.tensor(i)[j].bits, code.visible)
              << name_of(k) << " step " << step << " tensor " << i << " element " << j;
          plain.tensor(i)[j] = column::decode(code.visible, code.kept);
        }
      }
    }
    ASSERT_TRUE(hidden.intact());
  }
  for (auto k : all_kinds) same_bits_everywhere<Rule, Format, Column>(rule, k);
}

}  // namespace test
