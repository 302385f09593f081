// The rules as element functions, called the way a user's own kernel calls them.
// Against PyTorch's and timm's steps, against the float64 reference within derived bounds, and
// their constants.
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
static_assert(
    are_rules<memfit::sgd, memfit::momentum, memfit::adam, memfit::adamw, memfit::amsgrad,
              memfit::amsgradw, memfit::nadam, memfit::radam, memfit::ademamix, memfit::rmsprop,
              memfit::adagrad, memfit::lion, memfit::signum, memfit::lamb, memfit::lars>);
static_assert(memfit::layerwise_rule<memfit::lamb> && memfit::layerwise_rule<memfit::lars> &&
              !memfit::layerwise_rule<memfit::adamw> && !memfit::layerwise_rule<memfit::sgd>);

template <class Rule>
constexpr std::size_t slots = std::size(Rule::slots);

using tensor = std::vector<reference::element<float>>;

/// The constants of one step, which may depend on the whole tensor.
template <class Rule>
auto constants_for(Rule const& rule, [[maybe_unused]] tensor const& all,
                   [[maybe_unused]] std::vector<float> const& g, std::int64_t t) {
  auto const k = rule.at(t);
  if constexpr (memfit::layerwise_rule<Rule>) {
    double parameter = 0, direction = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      double u = 0;
      if constexpr (requires { k.direction(all[i].p, g[i]); }) {
        u = double{k.direction(all[i].p, g[i])};
      } else {
        float s[slots<Rule>];
        std::copy_n(all[i].s.begin(), slots<Rule>, s);
        u = double{k.direction(all[i].p, g[i], s)};
      }
      parameter += double{all[i].p} * double{all[i].p};
      direction += u * u;
    }
    return k.with({std::sqrt(parameter), std::sqrt(direction)});
  } else {
    return k;
  }
}

/// One step of one tensor in fp32.
template <class Rule>
void step(Rule const& rule, tensor& all, std::vector<float> const& g, std::int64_t t) {
  auto const constants = constants_for(rule, all, g, t);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto& e = all[i];
    if constexpr (slots<Rule> == 0) {
      constants(e.p, g[i]);
    } else {
      float s[slots<Rule>];
      std::copy_n(e.s.begin(), slots<Rule>, s);
      constants(e.p, g[i], s);
      std::copy_n(s, slots<Rule>, e.s.begin());
    }
  }
}
/// Of a tensor of one element.
template <class Rule>
void step(Rule const& rule, reference::element<float>& e, float g, std::int64_t t) {
  tensor all{e};
  step(rule, all, {g}, t);
  e = all[0];
}

template <class Rule>
void follows_pytorch(Rule const& rule, golden::rule_case const& c) {
  tensor all;
  for (double p : c.start) all.push_back({static_cast<float>(p), {}});
  for (std::size_t k = 0; k < c.steps.size(); ++k) {
    std::vector<float> const g(c.steps[k].g.begin(), c.steps[k].g.end());
    step(rule, all, g, static_cast<std::int64_t>(k) + 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const& e = all[i];
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
  std::vector<tracked> exact_g;
  for (float x : g) exact_g.push_back(tracked::stored(x));
  for (std::int64_t t : {1, 2, 7, 1000, 1'000'000}) {
    tensor all;
    std::vector<reference::element<tracked>> exact;
    for (std::size_t i = 0; i < count; ++i) {
      auto& e = all.emplace_back(reference::element<float>{p[i], {}});
      auto& x = exact.emplace_back(reference::element<tracked>{tracked::stored(p[i]), {}});
      for (std::size_t s = 0; s < slots<Rule> && t > 1; ++s) {
        e.s[s] = moments[s][i];
        x.s[s] = tracked::stored(moments[s][i]);
      }
    }
    step(rule, all, g, t);
    reference::take_step(reference::of(rule), exact, exact_g, t);
    for (std::size_t i = 0; i < count; ++i) {
      auto const& [x, moment] = exact[i];
      ASSERT_LE(std::fabs(double{all[i].p} - x.value), 2 * x.bound) << i << " step " << t;
      for (std::size_t s = 0; s < slots<Rule>; ++s)
        ASSERT_LE(std::fabs(double{all[i].s[s]} - moment[s].value), 2 * moment[s].bound)
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
  stays_within_fp32_rounding(memfit::adagrad{0.02, 0.3, 1e-3, 0.1, 0.2});
  stays_within_fp32_rounding(memfit::lion{0.02, 0.8, 0.95, 0.1});
  stays_within_fp32_rounding(memfit::signum{0.02, 0.8, 0.1});
  stays_within_fp32_rounding(memfit::lamb{0.02, 0.8, 0.95, 1e-3, 0.1});
  stays_within_fp32_rounding(memfit::lars{0.5, 0.8, 0.1, 0.01, 1e-3});
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
  EXPECT_EQ((std::array{a.lr, a.lr_decay, a.eps, a.weight_decay, a.initial_accumulator}),
            (std::array{1e-2, 0.0, 1e-10, 0.0, 0.0}));
}

TEST(rule, defaults_are_the_papers_where_pytorch_has_none) {
  memfit::lion const l;
  EXPECT_EQ((std::array{l.lr, l.beta1, l.beta2}), (std::array{1e-4, 0.9, 0.99}));
  EXPECT_EQ(memfit::signum{}.momentum, 0.9);
  memfit::ademamix const m;
  EXPECT_EQ((std::array{m.beta1, m.beta2, m.beta3, m.eps}), (std::array{0.9, 0.999, 0.9999, 1e-8}));
  memfit::lars const r;
  EXPECT_EQ((std::array{r.momentum, r.trust_coefficient}), (std::array{0.9, 1e-3}));
}

TEST(rule, defaults_are_timms_where_the_paper_has_none) {
  EXPECT_EQ(adam_fields(memfit::lamb{}), (std::array{1e-3, 0.9, 0.999, 1e-6, 1e-2}));
  memfit::lars const r;
  EXPECT_EQ((std::array{r.lr, r.eps, r.weight_decay}), (std::array{1.0, 1e-8, 0.0}));
}

template <class Rule>
void is_still_at_zero(Rule const& rule) {
  reference::element<float> e{0.0f, {}};
  for (int t : {1, 2, 1000}) step(rule, e, 0.0f, t);
  EXPECT_EQ(e.p, 0.0f);
  EXPECT_EQ(e.s, (std::array<float, 3>{}));
}

TEST(rule, nothing_moves_without_gradient_and_moments_even_when_eps_is_zero) {
  is_still_at_zero(memfit::sgd{});
  is_still_at_zero(memfit::momentum{});
  is_still_at_zero(memfit::adam{.eps = 0});
  is_still_at_zero(memfit::adamw{.eps = 0});
  is_still_at_zero(memfit::amsgrad{.eps = 0});
  is_still_at_zero(memfit::amsgradw{.eps = 0});
  is_still_at_zero(memfit::nadam{.eps = 0});
  is_still_at_zero(memfit::radam{.eps = 0});
  is_still_at_zero(memfit::ademamix{.eps = 0});
  is_still_at_zero(memfit::rmsprop{.eps = 0});
  is_still_at_zero(memfit::adagrad{.eps = 0});
  is_still_at_zero(memfit::lion{});
  is_still_at_zero(memfit::signum{});
  is_still_at_zero(memfit::lamb{.eps = 0});
  is_still_at_zero(memfit::lars{.eps = 0});
}

template <class Rule>
void drops_what_has_no_second_moment(Rule rule) {
  rule.weight_decay = 0;
  // The square of the second gradient vanishes.
  for (float g : {0.0f, 1e-30f}) {
    reference::element<float> e{1.0f, {}};
    for (std::size_t s = 0; s < slots<Rule>; ++s)
      if (Rule::slots[s].range == memfit::range::any) e.s[s] = 0.5f;
    step(rule, e, g, 500);
    EXPECT_EQ(e.p, 1.0f);
    EXPECT_EQ(e.s, (std::array<float, 3>{}));
  }
}

TEST(rule, a_direction_without_a_second_moment_is_dropped) {
  drops_what_has_no_second_moment(memfit::adam{});
  drops_what_has_no_second_moment(memfit::adamw{});
  drops_what_has_no_second_moment(memfit::amsgrad{});
  drops_what_has_no_second_moment(memfit::amsgradw{});
  drops_what_has_no_second_moment(memfit::nadam{});
  drops_what_has_no_second_moment(memfit::radam{});
  drops_what_has_no_second_moment(memfit::ademamix{});
  drops_what_has_no_second_moment(memfit::rmsprop{});
  drops_what_has_no_second_moment(memfit::adagrad{});
  drops_what_has_no_second_moment(memfit::lamb{});
}

TEST(rule, the_maximum_of_amsgrad_never_falls) {
  reference::element<float> e{0.0f, {}};
  float most = 0;
  for (int t = 1; t <= 100; ++t) {
    step(memfit::amsgrad{.beta2 = 0.5}, e, t % 10 == 1 ? 1.0f : 0.0f, t);
    EXPECT_GE(e.s[2], most);
    EXPECT_GE(e.s[2], e.s[1]);
    most = e.s[2];
  }
  EXPECT_GT(most, 100 * e.s[1]) << "the second moment has fallen since";
}

TEST(rule, nadam_knows_the_product_of_all_momenta_at_any_step) {
  for (double beta1 : {0.0, 0.9, 0.999, 1 - 1e-6})
    for (double decay : {0.0, 1e-5, 4e-3, 0.33, 1.0, 1e3}) {
      memfit::nadam const rule{.beta1 = beta1, .momentum_decay = decay};
      auto const momentum = [&](double t) { return beta1 * (1 - 0.5 * std::pow(0.96, t * decay)); };
      double product = 1;
      for (int t = 1; t <= 20'000; ++t) {
        product *= momentum(t);
        if (t > 10 && t % 1999 != 0) continue;
        auto const constants = rule.at(t);
        EXPECT_NEAR(constants.from_gradient, (1 - momentum(t)) / (1 - product), 1e-6)
            << beta1 << ", " << decay << ", step " << t;
        double const moment = momentum(t + 1) / (1 - product * momentum(t + 1));
        EXPECT_NEAR(constants.from_moment, moment, 1e-6 * moment)
            << beta1 << ", " << decay << ", step " << t;
      }
      // Steps that no loop over all of them could reach.
      EXPECT_NEAR(rule.at(std::int64_t{1} << 60).from_gradient,
                  decay == 0 ? 1 - beta1 / 2 : 1 - beta1, 1e-6);
    }
}

TEST(rule, radam_rectifies_from_an_average_of_more_than_five_gradients_on) {
  memfit::radam const rule;
  for (int t : {1, 5}) EXPECT_EQ(rule.at(t).inverse_root_correction2, 0.0f) << t;
  EXPECT_GT(rule.at(6).inverse_root_correction2, 0.0f);
  EXPECT_NEAR(rule.at(1'000'000).step_size, 1e-3, 1e-9);
  memfit::radam const never{.beta2 = 0.6};
  EXPECT_EQ(never.at(1'000'000).inverse_root_correction2, 0.0f);
}

TEST(rule, ademamix_warms_up_by_half_lives_and_then_stays) {
  memfit::ademamix const rule{.alpha_warmup = 1000, .beta3_warmup = 1000};
  auto const half_life = [&](int t) { return -1 / std::log1p(-double{rule.at(t).fresh3}); };
  double const from = -1 / std::log(0.9), to = -1 / std::log(0.9999);
  for (int t : {1, 10, 500, 999, 1000, 5000}) {
    double const done = std::min(t / 1000.0, 1.0);
    EXPECT_NEAR(half_life(t), from + done * (to - from), 1e-6 * to) << t;
    EXPECT_NEAR(rule.at(t).alpha, 5 * done, 1e-6) << t;
  }
  EXPECT_EQ(memfit::ademamix{}.at(1).alpha, 5.0f);
  memfit::ademamix const shorter{.beta1 = 0.9, .beta3 = 0.5, .beta3_warmup = 10};
  EXPECT_EQ(shorter.at(1).fresh3, 0.5f) << "beta3 is never above its end";
  memfit::ademamix const from_nothing{.beta1 = 0, .beta3 = 0.99, .beta3_warmup = 10};
  EXPECT_NEAR(from_nothing.at(5).fresh3, 1 - std::exp(2 * std::log(0.99)), 1e-7);
}

template <class Rule>
double trust_of(Rule const& rule, memfit::layer_norms const& n) {
  auto const k = rule.at(1).with(n);
  if constexpr (requires { k.ratio; })
    return double{k.ratio};
  else
    return double{k.step_size};
}

TEST(rule, trust_is_one_where_a_norm_is_zero_and_stays_within_its_bounds) {
  memfit::lamb const lamb{.lr = 1};
  memfit::lars const lars{.trust_coefficient = 0.5, .eps = 0};
  for (memfit::layer_norms n : {memfit::layer_norms{0, 3}, {3, 0}, {0, 0}}) {
    EXPECT_EQ(trust_of(lamb, n), 1);
    EXPECT_EQ(trust_of(lars, n), 1);
  }
  EXPECT_EQ(trust_of(lamb, {8, 2}), 4);
  EXPECT_EQ(trust_of(lars, {8, 2}), 2);
  EXPECT_EQ(trust_of(memfit::lamb{.lr = 1, .max_trust = 3}, {8, 2}), 3);
  EXPECT_EQ(trust_of(memfit::lamb{.lr = 1, .min_trust = 5}, {8, 2}), 5);
  EXPECT_EQ(trust_of(memfit::lamb{.lr = 1, .min_trust = 1, .max_trust = 1}, {8, 2}), 1);
  EXPECT_EQ(trust_of(memfit::lars{.min_trust = 1, .max_trust = 1}, {8, 2}), 1);
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

template <class Rule>
void adam_names_its_fields() {
  EXPECT_EQ(memfit::invalid_hyperparameter(Rule{}), nullptr);
  names_the_field(&Rule::lr, "lr", {});
  names_the_field(&Rule::beta1, "beta1", {1.0, 1.5});
  names_the_field(&Rule::beta2, "beta2", {1.0, 1.5});
  names_the_field(&Rule::eps, "eps", {});
  names_the_field(&Rule::weight_decay, "weight_decay", {});
}

TEST(rule, names_the_hyperparameter_that_is_out_of_range) {
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::adamw{}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::adam{.lr = 0, .beta1 = 0, .eps = 0}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::sgd{}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::momentum{}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::rmsprop{}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::adagrad{}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::lion{}), nullptr);
  EXPECT_EQ(memfit::invalid_hyperparameter(memfit::signum{}), nullptr);
  names_the_field(&memfit::sgd::lr, "lr", {});
  names_the_field(&memfit::sgd::weight_decay, "weight_decay", {});
  names_the_field(&memfit::momentum::lr, "lr", {});
  names_the_field(&memfit::momentum::momentum, "momentum", {});
  names_the_field(&memfit::momentum::dampening, "dampening", {1.5});
  names_the_field(&memfit::momentum::weight_decay, "weight_decay", {});
  adam_names_its_fields<memfit::adam>();
  adam_names_its_fields<memfit::adamw>();
  adam_names_its_fields<memfit::amsgrad>();
  adam_names_its_fields<memfit::amsgradw>();
  adam_names_its_fields<memfit::nadam>();
  names_the_field(&memfit::nadam::momentum_decay, "momentum_decay", {});
  adam_names_its_fields<memfit::radam>();
  adam_names_its_fields<memfit::ademamix>();
  names_the_field(&memfit::ademamix::beta3, "beta3", {1.0, 1.5});
  names_the_field(&memfit::ademamix::alpha, "alpha", {});
  EXPECT_STREQ(memfit::invalid_hyperparameter(memfit::ademamix{.alpha_warmup = -1}),
               "alpha_warmup");
  EXPECT_STREQ(memfit::invalid_hyperparameter(memfit::ademamix{.beta3_warmup = -1}),
               "beta3_warmup");
  names_the_field(&memfit::rmsprop::lr, "lr", {});
  names_the_field(&memfit::rmsprop::alpha, "alpha", {1.0, 1.5});
  names_the_field(&memfit::rmsprop::eps, "eps", {});
  names_the_field(&memfit::rmsprop::weight_decay, "weight_decay", {});
  names_the_field(&memfit::adagrad::lr, "lr", {});
  names_the_field(&memfit::adagrad::lr_decay, "lr_decay", {});
  names_the_field(&memfit::adagrad::eps, "eps", {});
  names_the_field(&memfit::adagrad::weight_decay, "weight_decay", {});
  names_the_field(&memfit::adagrad::initial_accumulator, "initial_accumulator", {});
  names_the_field(&memfit::lion::lr, "lr", {});
  names_the_field(&memfit::lion::beta1, "beta1", {1.0, 1.5});
  names_the_field(&memfit::lion::beta2, "beta2", {1.0, 1.5});
  names_the_field(&memfit::lion::weight_decay, "weight_decay", {});
  names_the_field(&memfit::signum::lr, "lr", {});
  names_the_field(&memfit::signum::momentum, "momentum", {1.0, 1.5});
  names_the_field(&memfit::signum::weight_decay, "weight_decay", {});
  names_the_field(&memfit::lamb::lr, "lr", {});
  names_the_field(&memfit::lamb::beta1, "beta1", {1.0, 1.5});
  names_the_field(&memfit::lamb::beta2, "beta2", {1.0, 1.5});
  names_the_field(&memfit::lamb::eps, "eps", {});
  names_the_field(&memfit::lamb::weight_decay, "weight_decay", {});
  names_the_field(&memfit::lamb::min_trust, "min_trust", {});
  names_the_field(&memfit::lars::lr, "lr", {});
  names_the_field(&memfit::lars::momentum, "momentum", {});
  names_the_field(&memfit::lars::weight_decay, "weight_decay", {});
  names_the_field(&memfit::lars::trust_coefficient, "trust_coefficient", {});
  names_the_field(&memfit::lars::eps, "eps", {});
  names_the_field(&memfit::lars::min_trust, "min_trust", {});
  for (double most : {0.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_STREQ((memfit::lamb{.min_trust = 1, .max_trust = most}.invalid()), "max_trust");
    EXPECT_STREQ((memfit::lars{.min_trust = 1, .max_trust = most}.invalid()), "max_trust");
  }
}

}  // namespace
