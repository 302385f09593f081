// Layerwise rules: norms over the whole tensor that no bad element, gate, neighbour, thread or lane
// may disturb, and what LAMB and LARS promise of their steps' length.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "memfit/step.hpp"
#include "optimizer/model.hpp"
#include "support/guarded.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"

namespace {

constexpr memfit::lamb lamb{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1};
constexpr memfit::lars lars{.lr = 0.5, .momentum = 0.8, .weight_decay = 0.1};

template <class Rule>
using model8 = test::model<Rule, memfit::float8>;

std::vector<float> input(std::int64_t count, std::uint64_t seed) {
  return test::make_input(test::kind::normal, count, seed);
}
/// Longer than a part, and no multiple of anything.
constexpr std::int64_t count = 2603;

/// A user's rule for plain floats: LARS again.
struct plain_lars : memfit::lars {
  struct constants : memfit::lars::constants {
    float direction(float p, float g) const { return memfit::lars::constants::direction(p, g); }
    void operator()(float& p, float g, float (&s)[1]) const {
      if (g == g) memfit::lars::constants::operator()(p, g, s);
    }
    constants with(memfit::layer_norms const& n) const {
      return {memfit::lars::constants::with(n)};
    }
  };
  constants at(std::int64_t step) const { return {memfit::lars::at(step)}; }
};
static_assert(memfit::layerwise_rule<plain_lars>);

struct without_direction : memfit::sgd {
  struct constants : memfit::sgd::constants {
    constants with(memfit::layer_norms const&) const { return *this; }
  };
  constants at(std::int64_t step) const { return {memfit::sgd::at(step)}; }
};
static_assert(!memfit::rule<without_direction>, "a layerwise rule says what is to be measured");

TEST(layerwise, a_rule_for_plain_floats_has_the_bits_of_one_for_lanes) {
  model8<memfit::lars> expected(memfit::host{1, memfit::isa::scalar}, lars, {input(count, 1)});
  std::vector<test::vectors> gradients;
  for (std::uint64_t step = 1; step <= 2; ++step) {
    gradients.push_back({input(count, 10 * step)});
    expected.optimizer().step(gradients.back());
  }
  for (auto const& host : test::all_hosts()) {
    model8<plain_lars> m(host.exec, {lars}, {input(count, 1)});
    for (auto const& g : gradients) m.optimizer().step(g);
    EXPECT_EQ(m.bytes(), expected.bytes()) << host.name;
  }
}

/// Elements that the step leaves alone, beside a tensor that has zeros instead, which add nothing
/// to a norm.
template <class Rule>
void does_not_count(Rule const& rule, float p, float g, float limit = HUGE_VALF) {
  for (auto const& host : test::all_hosts()) {
    auto bad = input(count, 1), zero = bad, bad_g = input(count, 2), zero_g = bad_g;
    auto const positions = {0, 17, 255, 1023, 1024, 2602};
    for (auto i : positions) {
      auto const at = static_cast<std::size_t>(i);
      bad[at] = p, bad_g[at] = g;
      zero[at] = zero_g[at] = 0;
    }
    model8<Rule> hit(host.exec, rule, {bad}), clean(host.exec, rule, {zero});
    hit.optimizer().step(test::vectors{bad_g}, {.limit = limit});
    clean.optimizer().step(test::vectors{zero_g}, {.limit = limit});
    EXPECT_EQ(hit.optimizer().nonfinite_sync(), positions.size());
    auto after = hit.parameter(0);
    for (auto i : positions) after[static_cast<std::size_t>(i)] = 0;
    EXPECT_EQ(after, clean.parameter(0)) << host.name << ": " << p << ", " << g;
  }
}

TEST(layerwise, elements_left_alone_do_not_count) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (auto [p, g] : {std::pair{2.0f, nan}, {2.0f, -HUGE_VALF}, {HUGE_VALF, 1.0f}}) {
    does_not_count(lamb, p, g);
    does_not_count(lars, p, g);
    does_not_count(lars, p, g, 0.5f);
  }
  does_not_count(lamb, 2.0f, 1e30f);  // whose square is no number
}

template <class Rule>
void heeds_the_gate(Rule const& rule) {
  test::vectors const start{input(count, 1)}, g{input(count, 2)};
  test::vectors scaled = g;
  for (auto& x : scaled[0]) x *= 1024;
  float const multiplier = 1.0f / 1024;
  model8<Rule> gated(memfit::host{2}, rule, start), plain(memfit::host{2}, rule, start);
  gated.optimizer().step(scaled, {.multiplier = &multiplier});
  plain.optimizer().step(g);
  auto const stepped = plain.bytes();
  EXPECT_EQ(gated.bytes(), stepped);

  std::uint32_t const skip = 1;
  plain.optimizer().step(test::vectors{input(count, 3)}, {.skip = &skip});
  EXPECT_EQ(plain.bytes(), stepped);

  test::vectors clipped = g;
  for (auto& x : clipped[0]) x = std::fmin(std::fmax(x, -0.5f), 0.5f);
  model8<Rule> limited(memfit::host{2}, rule, start), expected(memfit::host{2}, rule, start);
  limited.optimizer().step(g, {.limit = 0.5f});
  expected.optimizer().step(clipped);
  EXPECT_EQ(limited.bytes(), expected.bytes());
}

TEST(layerwise, norms_are_of_the_gradients_that_the_gate_makes) {
  heeds_the_gate(lamb);
  heeds_the_gate(lars);
}

template <class Rule>
void steps_each_alone(Rule const& rule) {
  test::vectors start, gradients;
  for (std::uint64_t i = 0; i < 200; ++i) {
    start.push_back(input(static_cast<std::int64_t>(i * 7 % 300), i));
    gradients.push_back(input(std::ssize(start.back()), 1000 + i));
  }
  gradients[5] = std::vector<float>();  // takes no part
  model8<Rule> all(memfit::host{5}, rule, start);
  all.optimizer().step(gradients);
  for (std::size_t i = 0; i < start.size(); ++i) {
    model8<Rule> one(memfit::host{1}, rule, {start[i]});
    one.optimizer().step_one(0, gradients[i]);
    ASSERT_EQ(one.parameter(0), all.parameter(i)) << i;
    ASSERT_EQ(one.optimizer().moment_sync(0, 0), all.optimizer().moment_sync(i, 0)) << i;
  }
  EXPECT_EQ(all.parameter(5), start[5]);
}

TEST(layerwise, every_tensor_has_norms_of_its_own) {
  steps_each_alone(lamb);
  steps_each_alone(lars);
}

/// Tensors after three steps, and the length of the first relative to the start.
template <class Rule>
std::pair<std::vector<float>, double> travelled(Rule const& rule, float scale) {
  auto const start = input(count, 1);
  model8<Rule> m(memfit::host{1}, rule, {start}, 1 << 20);
  double length = 0, norm = 0;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    auto g = input(count, 10 * step);
    for (auto& x : g) x *= scale;
    m.optimizer().step(test::vectors{g});
    if (step > 1) continue;
    auto const after = m.parameter(0);
    for (std::size_t i = 0; i < start.size(); ++i) {
      length += std::pow(double{after[i]} - double{start[i]}, 2);
      norm += std::pow(double{start[i]}, 2);
    }
  }
  return {m.parameter(0), std::sqrt(length / norm)};
}

TEST(layerwise, steps_are_as_long_as_the_tensor_is_large_whatever_the_gradients_scale) {
  constexpr memfit::lamb by_lamb{.lr = 0.02, .eps = 0};
  constexpr memfit::lars by_lars{.lr = 0.5, .trust_coefficient = 0.04, .eps = 0};
  auto const [to, length] = travelled(by_lamb, 1);
  EXPECT_NEAR(length, 0.02, 1e-6);
  auto const [lars_to, lars_length] = travelled(by_lars, 1);
  EXPECT_NEAR(lars_length, 0.02, 1e-6);
  for (float scale : {0x1p-20f, 0x1p20f}) {
    EXPECT_EQ(travelled(by_lamb, scale).first, to) << scale;
    EXPECT_EQ(travelled(by_lars, scale).first, lars_to) << scale;
  }
}

TEST(layerwise, a_tensor_of_zeros_and_a_gradient_of_zeros_have_trust_one) {
  std::vector<float> const zeros(count), g = input(count, 2);
  model8<memfit::lars> still(memfit::host{1}, lars, {zeros, g});
  still.optimizer().step(test::vectors{g, zeros});
  for (std::size_t i = 0; i < g.size(); ++i) {
    ASSERT_EQ(still.parameter(0)[i], -0.5f * g[i]);
    ASSERT_NEAR(still.parameter(1)[i], g[i] * 0.95f, 1e-6);
  }
  model8<memfit::lamb> steps(memfit::host{1}, lamb, {zeros});
  steps.optimizer().step(test::vectors{g});
  for (std::size_t i = 0; i < g.size(); ++i)
    ASSERT_NEAR(steps.parameter(0)[i], std::copysign(0.01f, -g[i]), 1e-4) << g[i];
}

TEST(layerwise, the_stateless_step_has_the_bits_of_the_optimizer) {
  model8<memfit::lamb> expected(memfit::host{1}, lamb, {input(count, 1)});
  test::guarded<float> p(input(count, 1));
  auto const blocks = memfit::block_count(count, 256);
  test::guarded<std::uint8_t> codes[2] = {test::guarded<std::uint8_t>(count),
                                          test::guarded<std::uint8_t>(count)};
  test::guarded<float> scales[2] = {test::guarded<float>(blocks), test::guarded<float>(blocks)};
  for (std::int64_t t = 1; t <= 3; ++t) {
    auto const g = input(count, static_cast<std::uint64_t>(10 * t));
    expected.optimizer().step_one(0, g);
    memfit::step<memfit::float8>(
        memfit::host{5}, lamb, t, p.ref("w"), g,
        {{codes[0].data(), scales[0].data()}, {codes[1].data(), scales[1].data()}});
    ASSERT_EQ(p.snapshot(), expected.tensor(0).snapshot()) << "step " << t;
  }
  auto const before = p.snapshot();
  std::uint32_t const skip = 1;
  memfit::step<memfit::float8>(
      memfit::host{5}, lamb, 4, p.ref("w"), input(count, 5),
      {{codes[0].data(), scales[0].data()}, {codes[1].data(), scales[1].data()}}, {.skip = &skip});
  EXPECT_EQ(p.snapshot(), before);
}

}  // namespace
