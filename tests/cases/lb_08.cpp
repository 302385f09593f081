// LB-08: Lion's decay was folded into the gradient, which turns signs, in one path and not in
// another, and beta2 was lost. Here: the reported inputs in every format and vector width, and for
// both sign rules that decay reaches no moment.
#include <gtest/gtest.h>

#include <vector>

#include "memfit/optimizer.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"

namespace {

constexpr std::size_t count = 300;

/// From how many elements on moments have the optimizer's format.
constexpr std::int64_t always = 1, never = count + 1;

template <class Rule, class Format>
struct run {
  run(memfit::host const& exec, Rule const& rule, std::int64_t quantized)
      : w(count, 1.0f),
        opt(exec, rule, std::vector{memfit::ref(w)}, {.min_quantized = quantized}) {}

  void step(float g) { opt.step_one(0, std::vector<float>(count, g)); }
  void holds(double parameter, double moment, double tolerance) const {
    auto const m = opt.moment_sync(0, 0);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(w[i], parameter, 1e-7) << "element " << i;
      ASSERT_NEAR(m[i], moment, tolerance) << "element " << i;
    }
  }

  std::vector<float> w;
  memfit::optimizer<Rule, Format> opt;
};

template <class Format>
void takes_the_reported_steps(std::int64_t quantized, double of_moments) {
  memfit::lion const rule{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
  for (auto const& host : test::all_hosts()) {
    SCOPED_TRACE(host.name);
    run<memfit::lion, Format> r(host.exec, rule, quantized);
    r.step(-0.05f);
    r.holds(1.009, -0.0005, of_moments);
    r.step(0.02f);
    r.holds(0.997991, -0.000295, of_moments);
    run<memfit::lion, Format> still(host.exec, rule, quantized);
    still.step(0);
    still.holds(0.999, 0, of_moments);
  }
}

TEST(LB_08, lion_takes_the_reported_steps) {
  takes_the_reported_steps<memfit::float8>(never, 1e-7);
  takes_the_reported_steps<memfit::float8>(always, 1e-7);
  // This map ends at -0.993 of the block's largest magnitude.
  takes_the_reported_steps<memfit::dynamic8>(always, 6e-6);
}

template <class Rule>
void decay_reaches_no_moment(std::int64_t quantized) {
  Rule plain{.lr = 0.01}, decayed = plain;
  decayed.weight_decay = 0.5;
  memfit::host const exec{1};
  run<Rule, memfit::float8> a(exec, plain, quantized), b(exec, decayed, quantized);
  for (std::uint64_t step = 1; step <= 20; ++step) {
    auto const g = test::make_input(test::kind::lognormal, count, step);
    auto const from_a = a.w, from_b = b.w;
    a.opt.step_one(0, g);
    b.opt.step_one(0, g);
    ASSERT_EQ(a.opt.moment_sync(0, 0), b.opt.moment_sync(0, 0)) << "step " << step;
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_NEAR(b.w[i] - from_b[i] * 0.995f, a.w[i] - from_a[i], 1e-6) << "step " << step;
  }
}

TEST(LB_08, decay_turns_no_sign) {
  for (auto quantized : {always, never}) {
    decay_reaches_no_moment<memfit::lion>(quantized);
    decay_reaches_no_moment<memfit::signum>(quantized);
  }
}

}  // namespace
