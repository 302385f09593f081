// Double arithmetic of the few numbers of a step: against the standard library's.
// Over all that rules ask for.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/core/scalar.hpp"

namespace {

/// `count` values from `first` on, evenly spaced.
std::vector<double> evenly(double first, double step, int count) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values.push_back(first + step * i);
  return values;
}

TEST(scalar, logarithm_is_within_1e_15) {
  EXPECT_EQ(memfit::logarithm(1.0), 0.0);
  auto values = evenly(0.25, 1e-5, 400'000);
  for (double exponent : evenly(-1022, 0.007, 290'000)) values.push_back(std::exp2(exponent));
  for (double x : values)
    ASSERT_NEAR(memfit::logarithm(x), std::log(x), 1e-15 * std::fabs(std::log(x))) << x;
  for (int bits = 4; bits <= 53; ++bits) {
    double const apart = std::ldexp(1, -bits);
    ASSERT_NEAR(memfit::logarithm(1 - apart), std::log1p(-apart), 1e-15 * std::log1p(apart));
  }
}

TEST(scalar, exponential_is_within_1e_15_near_0_and_vanishes_far_below) {
  EXPECT_EQ(memfit::exponential(0.0), 1.0);
  for (double x : evenly(-2, 1e-5, 200'000))
    ASSERT_NEAR(memfit::exponential(x), std::exp(x), 1e-15 * std::exp(x)) << x;
  for (double x : evenly(-700, 0.01, 70'000))
    ASSERT_NEAR(memfit::exponential(x), std::exp(x), 1e-13 * std::exp(x)) << x;
  for (double x : {-700.5, -1e6, -HUGE_VAL}) EXPECT_EQ(memfit::exponential(x), 0.0);
}

}  // namespace
