// Gradients that are not finite, or so large that the new state would not be: the element stays as
// it was. Its neighbours step as if nothing had happened, and the count can be read.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "optimizer/model.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"

namespace {

constexpr std::int64_t count = 600;
constexpr std::int64_t positions[] = {0, 1, 15, 16, 17, 255, 256, count - 1};
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Gradients that are smaller at the watched positions than elsewhere, so that no block's scale
/// hangs on them.
test::vectors gradients(std::uint64_t seed) {
  auto g = test::make_input(test::kind::normal, count, seed);
  for (auto& x : g) x += std::copysign(0.5f, x);
  for (auto i : positions) g[static_cast<std::size_t>(i)] *= 0.25f;
  return {g};
}

template <class Rule>
Rule small_step() {
  Rule rule{};
  rule.lr = 0.01;
  rule.weight_decay = 0.1;
  return rule;
}

/// Old and new moment of an element left alone: the same number, requantized at most.
template <class Format>
void kept(float before, float after, float largest) {
  if constexpr (std::is_same_v<Format, memfit::fp32> || std::is_same_v<Format, memfit::bf16> ||
                std::is_same_v<Format, memfit::fp16>) {
    EXPECT_EQ(before, after);
  } else if constexpr (std::is_same_v<Format, memfit::linear8>) {
    EXPECT_NEAR(before, after, largest / 127);
  } else {
    EXPECT_NEAR(before, after, std::fabs(before) / 8 + largest * 1e-5f);
  }
}

template <class Rule, class Format, class Column>
void leaves_alone(std::vector<float> const& bad_values) {
  using model = test::model<Rule, Format, Column>;
  auto const start = test::vectors{test::make_input(test::kind::normal, count, 1)};
  for (auto const& host : test::all_hosts()) {
    SCOPED_TRACE(host.name);
    for (float bad : bad_values) {
      SCOPED_TRACE(bad);
      model hit(host.exec, small_step<Rule>(), start), clean(host.exec, small_step<Rule>(), start);
      hit.optimizer().step(gradients(2));
      clean.optimizer().step(gradients(2));
      auto const before = hit.tensor(0).snapshot();
      test::vectors moments;
      for (int s = 0; s < model::slots; ++s) moments.push_back(hit.optimizer().moment_sync(0, s));

      auto poisoned = gradients(3);
      for (auto i : positions) poisoned[0][static_cast<std::size_t>(i)] = bad;
      hit.optimizer().step(poisoned);
      clean.optimizer().step(gradients(3));

      auto const after = hit.tensor(0).snapshot(), expected = clean.tensor(0).snapshot();
      auto const width = sizeof(typename model::element);
      for (std::int64_t i = 0; i < count; ++i) {
        bool const was_hit =
            std::find(std::begin(positions), std::end(positions), i) != std::end(positions);
        auto const& want = was_hit ? before : expected;
        for (auto b = static_cast<std::size_t>(i) * width;
             b < static_cast<std::size_t>(i + 1) * width; ++b)
          ASSERT_EQ(after[b], want[b]) << "element " << i;
      }
      for (int s = 0; s < model::slots; ++s) {
        auto const now = hit.optimizer().moment_sync(0, s),
                   other = clean.optimizer().moment_sync(0, s);
        float largest = 0;
        for (float x : now) largest = std::max(largest, std::fabs(x));
        for (std::size_t i = 0; i < now.size(); ++i) {
          bool const was_hit = std::find(std::begin(positions), std::end(positions),
                                         static_cast<std::int64_t>(i)) != std::end(positions);
          if (was_hit) {
            kept<Format>(moments[static_cast<std::size_t>(s)][i], now[i], largest);
          } else {
            ASSERT_EQ(now[i], other[i]) << "slot " << s << " element " << i;
          }
        }
      }
      EXPECT_EQ(hit.optimizer().nonfinite_sync(), std::size(positions));
      EXPECT_EQ(clean.optimizer().nonfinite_sync(), 0u);
      EXPECT_EQ(hit.optimizer().steps_sync(0), 2);
      EXPECT_TRUE(hit.intact());
    }
  }
}

std::vector<float> const not_finite{nan, -nan, HUGE_VALF, -HUGE_VALF};

TEST(nonfinite, adamw_with_fp32_states) {
  leaves_alone<memfit::adamw, memfit::fp32, memfit::fp32>(not_finite);
}
TEST(nonfinite, adamw_with_float8_states) {
  leaves_alone<memfit::adamw, memfit::float8, memfit::fp32>(not_finite);
}
TEST(nonfinite, adam_with_dynamic8_states_and_split_parameters) {
  leaves_alone<memfit::adam, memfit::dynamic8, memfit::split<memfit::bf16>>(not_finite);
}
TEST(nonfinite, momentum_with_linear8_states_and_master_parameters) {
  leaves_alone<memfit::momentum, memfit::linear8, memfit::master<memfit::fp16>>(not_finite);
}
TEST(nonfinite, lion_whose_signs_are_finite_whatever_they_are_of) {
  leaves_alone<memfit::lion, memfit::float8, memfit::bf16>(not_finite);
}
TEST(nonfinite, sgd_with_bf16_parameters) {
  leaves_alone<memfit::sgd, memfit::fp32, memfit::bf16>(not_finite);
}

TEST(nonfinite, a_second_moment_that_would_overflow) {
  leaves_alone<memfit::adamw, memfit::fp32, memfit::fp32>({1e25f, -3e38f});
  leaves_alone<memfit::adamw, memfit::float8, memfit::fp32>({1e25f, -3e38f});
  leaves_alone<memfit::adam, memfit::dynamic8, memfit::split<memfit::bf16>>({1e25f});
}

TEST(nonfinite, a_second_moment_that_its_format_cannot_hold) {
  leaves_alone<memfit::adamw, memfit::fp16, memfit::fp32>({1e5f, -1e18f});
}

TEST(nonfinite, a_parameter_that_would_overflow) {
  test::model<memfit::sgd, memfit::fp32> wide(memfit::host{1}, {.lr = 1.0}, {{3e38f, 1.0f}});
  wide.optimizer().step(test::vectors{{-3e38f, -1.0f}});
  EXPECT_EQ(wide.parameter(0), (std::vector{3e38f, 2.0f}));
  EXPECT_EQ(wide.optimizer().nonfinite_sync(), 1u);
  test::model<memfit::sgd, memfit::fp32, memfit::fp16> half(memfit::host{1}, {.lr = 1.0},
                                                            {{65000.0f, 1.0f}});
  half.optimizer().step(test::vectors{{-1000.0f, -1.0f}});
  EXPECT_EQ(half.parameter(0)[1], 2.0f);
  EXPECT_TRUE(std::isfinite(half.parameter(0)[0]));
  EXPECT_EQ(half.optimizer().nonfinite_sync(), 1u);
}

TEST(nonfinite, whole_tensors_of_nan_leave_everything_and_count_it_all) {
  for (auto const& host : test::all_hosts()) {
    test::model<memfit::adamw, memfit::float8> m(host.exec, small_step<memfit::adamw>(),
                                                 {std::vector<float>(70'001, 1.0f)});
    m.optimizer().step(test::vectors{std::vector<float>(70'001, nan)});
    EXPECT_EQ(m.parameter(0), std::vector<float>(70'001, 1.0f)) << host.name;
    EXPECT_EQ(m.optimizer().nonfinite_sync(), 70'001u) << host.name;
    EXPECT_EQ(m.optimizer().moment_sync(0, 1), std::vector<float>(70'001, 0.0f)) << host.name;
  }
}

}  // namespace
