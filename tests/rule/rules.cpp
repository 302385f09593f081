// The rules as element functions, called the way a user's own kernel calls them.
// Against PyTorch's steps, against the float64 reference within derived bounds, and their
// constants.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/golden_rule_of.hpp"
#include "support/inputs.hpp"
#include "support/tracked.hpp"

namespace {

using reference::tracked;

template <class... Rules>
constexpr bool are_rules = (memfit::rule<Rules> && ...);
static_assert(are_rules<memfit::sgd, memfit::momentum, memfit::adam, memfit::adamw, memfit::amsgrad,
                        memfit::amsgradw, memfit::nadam, memfit::radam, memfit::ademamix,
                        memfit::rmsprop, memfit::adagrad, memfit::lion, memfit::signum>);

template <class Rule>
constexpr std::size_t slots = std::size(Rule::slots);

/// One step of one element in fp32.
template <class Rule>
void step(Rule const& rule, reference::element<float>& e, float g, std::int64_t t) {
  auto const constants = rule.at(t);
  if constexpr (slots<Rule> == 0) {
    constants(e.p, g);
  } else {
    float s[slots<Rule>];
    std::copy_n(e.s.begin(), slots<Rule>, s);
    constants(e.p, g, s);
    std::copy_n(s, slots<Rule>, e.s.begin());
  }
}

template <class Rule>
void follows_pytorch(Rule const& rule, golden::rule_case const& c) {
  for (std::size_t i = 0; i < c.start.size(); ++i) {
    reference::element<float> e{static_cast<float>(c.start[i]), {}};
    for (std::size_t k = 0; k < c.steps.size(); ++k) {
      step(rule, e, static_cast<float>(c.steps[k].g[i]), static_cast<std::int64_t>(k) + 1);
      EXPECT_NEAR(e.p, c.steps[k].p[i], 1e-6) << c.rule << " element " << i << " step " << k + 1;
      for (std::size_t s = 0; s < slots<Rule>; ++s)
        EXPECT_NEAR(e.s[s], c.steps[k].s[s][i], 1e-6 * (1 + std::fabs(e.s[s])))
            << c.rule << " element " << i << " step " << k + 1 << " slot " << s;
    }
  }
}

TEST(rule, follows_pytorch_over_eight_steps) {
  for (auto const& c : golden::rule_cases())
    EXPECT_TRUE(golden::with_rule_of(c, [&c](auto rule) { follows_pytorch(rule, c); })) << c.rule;
}

/// Random parameters, moments and gradients at early and late steps; the moments start from zero.
template <class Rule>
void stays_within_fp32_rounding(Rule const& rule) {
  constexpr int count = 20000;
  auto const p = test::make_input(test::kind::normal, count, 1);
  auto const g = test::make_input(test::kind::lognormal, count, 2);
  std::array<std::vector<float>, 3> moments;
  for (std::size_t s = 0; s < slots<Rule>; ++s) {
    moments[s] = test::make_input(test::kind::lognormal, count, 3 + s);
    if (Rule::slots[s].range == memfit::range::non_negative)
      for (auto& x : moments[s]) x = std::fabs(x);
  }
  for (std::int64_t t : {1, 2, 7, 1000, 1'000'000}) {
    for (std::size_t i = 0; i < count; ++i) {
      reference::element<float> e{p[i], {}};
      reference::element<tracked> exact{tracked::stored(p[i]), {}};
      for (std::size_t s = 0; s < slots<Rule> && t > 1; ++s) {
        e.s[s] = moments[s][i];
        exact.s[s] = tracked::stored(moments[s][i]);
      }
      step(rule, e, g[i], t);
      reference::of(rule)(exact, tracked::stored(g[i]), t);
      ASSERT_LE(std::fabs(double{e.p} - exact.p.value), 2 * exact.p.bound) << i << " step " << t;
      for (std::size_t s = 0; s < slots<Rule>; ++s)
        ASSERT_LE(std::fabs(double{e.s[s]} - exact.s[s].value), 2 * exact.s[s].bound)
            << i << " step " << t << " slot " << s;
    }
  }
}

TEST(rule, stays_within_the_rounding_of_fp32) {
  stays_within_fp32_rounding(memfit::sgd{.lr = 0.05, .weight_decay = 0.1});
  stays_within_fp32_rounding(
      memfit::momentum{.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1});
  stays_within_fp32_rounding(
      memfit::momentum{.lr = 0.05, .momentum = 0.8, .nesterov = true, .weight_decay = 0.1});
  stays_within_fp32_rounding(memfit::adam{0.02, 0.8, 0.95, 1e-3, 0.1});
  stays_within_fp32_rounding(memfit::adamw{0.02, 0.8, 0.95, 1e-3, 0.1});
  stays_within_fp32_rounding(memfit::amsgrad{0.02, 0.8, 0.95, 1e-3, 0.1});
  stays_within_fp32_rounding(memfit::amsgradw{0.02, 0.8, 0.95, 1e-3, 0.1});
  stays_within_fp32_rounding(memfit::nadam{0.02, 0.8, 0.95, 1e-3, 0.1, 0.3});
  stays_within_fp32_rounding(memfit::radam{0.02, 0.8, 0.95, 1e-3, 0.1});
  stays_within_fp32_rounding(memfit::ademamix{0.02, 0.8, 0.95, 0.999, 6, 1e-3, 0.1, 2000, 3000});
  stays_within_fp32_rounding(memfit::rmsprop{0.02, 0.9, 1e-3, 0.1});
  stays_within_fp32_rounding(memfit::adagrad{0.02, 0.3, 1e-3, 0.1});
  stays_within_fp32_rounding(memfit::lion{0.02, 0.8, 0.95, 0.1});
  stays_within_fp32_rounding(memfit::signum{0.02, 0.8, 0.1});
}

template <class Rule>
constexpr std::array<double, 5> adam_fields(Rule const& r) {
  return {r.lr, r.beta1, r.beta2, r.eps, r.weight_decay};
}

TEST(rule, defaults_are_pytorchs) {
  using five = std::array<double, 5>;
  EXPECT_EQ(memfit::sgd{}.lr, 1e-3);
  EXPECT_EQ(memfit::sgd{}.weight_decay, 0);
  EXPECT_EQ(memfit::momentum{}.dampening, 0);
  EXPECT_EQ(memfit::momentum{}.weight_decay, 0);
  EXPECT_FALSE(memfit::momentum{}.nesterov);
  EXPECT_EQ(adam_fields(memfit::adam{}), (five{1e-3, 0.9, 0.999, 1e-8, 0}));
  EXPECT_EQ(adam_fields(memfit::adamw{}), (five{1e-3, 0.9, 0.999, 1e-8, 1e-2}));
  EXPECT_EQ(adam_fields(memfit::amsgrad{}), (five{1e-3, 0.9, 0.999, 1e-8, 0}));
  EXPECT_EQ(adam_fields(memfit::amsgradw{}), (five{1e-3, 0.9, 0.999, 1e-8, 1e-2}));
  EXPECT_EQ(adam_fields(memfit::radam{}), (five{1e-3, 0.9, 0.999, 1e-8, 0}));
  EXPECT_EQ(adam_fields(memfit::nadam{}), (five{2e-3, 0.9, 0.999, 1e-8, 0}));
  EXPECT_EQ(memfit::nadam{}.momentum_decay, 4e-3);
  memfit::rmsprop const r;
  EXPECT_EQ((std::array{r.lr, r.alpha, r.eps, r.weight_decay}),
            (std::array{1e-2, 0.99, 1e-8, 0.0}));
  memfit::adagrad const a;
  EXPECT_EQ((std::array{a.lr, a.lr_decay, a.eps, a.weight_decay}),
            (std::array{1e-2, 0.0, 1e-10, 0.0}));
}

TEST(rule, defaults_are_the_papers_where_pytorch_has_none) {
  memfit::lion const l;
  EXPECT_EQ((std::array{l.lr, l.beta1, l.beta2}), (std::array{1e-4, 0.9, 0.99}));
  EXPECT_EQ(memfit::signum{}.momentum, 0.9);
  memfit::ademamix const m;
  EXPECT_EQ((std::array{m.beta1, m.beta2, m.beta3, m.eps}), (std::array{0.9, 0.999, 0.9999, 1e-8}));
}

template <class Rule>
void is_still_at_zero(Rule const& rule) {
  reference::element<float> e{0.0f, {}};
  for (int t = 1; t <= 3; ++t) step(rule, e, 0.0f, t);
  EXPECT_EQ(e.p, 0.0f);
  EXPECT_EQ(e.s[0], 0.0f);
  EXPECT_EQ(e.s[1], 0.0f);
}

TEST(rule, nothing_moves_without_gradient_and_moments_even_when_eps_is_zero) {
  is_still_at_zero(memfit::sgd{});
  is_still_at_zero(memfit::momentum{});
  is_still_at_zero(memfit::adam{.eps = 0});
  is_still_at_zero(memfit::adamw{.eps = 0});
}

TEST(rule, a_first_moment_without_a_second_is_dropped) {
  reference::element<float> e{1.0f, {0.5f, 0.0f}};
  step(memfit::adamw{.weight_decay = 0}, e, 0.0f, 5);
  EXPECT_EQ(e.p, 1.0f);
  EXPECT_EQ(e.s[0], 0.0f);
}

template <class Rule>
void names_the_field(double Rule::*field, std::string const& name, std::vector<double> bad) {
  for (double x : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL, -1e-9})
    bad.push_back(x);
  for (double x : bad) {
    Rule rule{};
    rule.*field = x;
    auto const* invalid = memfit::invalid_hyperparameter(rule);
    ASSERT_NE(invalid, nullptr) << name << " = " << x;
    EXPECT_EQ(invalid, name) << x;
  }
}

TEST(rule, names_the_hyperparameter_that_is_out_of_range) {
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::adamw{}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::adam{.lr = 0, .beta1 = 0, .eps = 0}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::sgd{}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::momentum{}), nullptr);
  names_the_field(&memfit::sgd::lr, "lr", {});
  names_the_field(&memfit::sgd::weight_decay, "weight_decay", {});
  names_the_field(&memfit::momentum::lr, "lr", {});
  names_the_field(&memfit::momentum::momentum, "momentum", {});
  names_the_field(&memfit::momentum::dampening, "dampening", {1.5});
  names_the_field(&memfit::momentum::weight_decay, "weight_decay", {});
  names_the_field(&memfit::adam::lr, "lr", {});
  names_the_field(&memfit::adam::beta1, "beta1", {1.0, 1.5});
  names_the_field(&memfit::adam::beta2, "beta2", {1.0, 1.5});
  names_the_field(&memfit::adam::eps, "eps", {});
  names_the_field(&memfit::adam::weight_decay, "weight_decay", {});
  names_the_field(&memfit::adamw::beta1, "beta1", {1.0});
  names_the_field(&memfit::adamw::beta2, "beta2", {1.0});
  names_the_field(&memfit::adamw::lr, "lr", {});
  names_the_field(&memfit::adamw::eps, "eps", {});
  names_the_field(&memfit::adamw::weight_decay, "weight_decay", {});
}

}  // namespace
