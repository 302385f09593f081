// Double arithmetic of the few numbers of a step: against the standard library's.
// Over all that rules ask for.
#include <gtest/gtest.h>

#include <cmath>

#include "memfit/core/scalar.hpp"

namespace {

TEST(scalar, logarithm_is_within_1e_15) {
  EXPECT_EQ(memfit::logarithm(1.0), 0.0);
  for (double x = 0x1p-1022; x < 1e300; x *= 1.0009)
    ASSERT_NEAR(memfit::logarithm(x), std::log(x), 1e-15 * std::fabs(std::log(x))) << x;
  for (double x = 0.25; x < 4; x += 1e-5)
    ASSERT_NEAR(memfit::logarithm(x), std::log(x), 1e-15 * std::fabs(std::log(x))) << x;
  for (double apart = 0x1p-53; apart < 0.1; apart *= 2)
    ASSERT_NEAR(memfit::logarithm(1 - apart), std::log1p(-apart), 1e-15 * std::log1p(apart));
}

TEST(scalar, exponential_is_within_1e_15_near_0_and_vanishes_far_below) {
  EXPECT_EQ(memfit::exponential(0.0), 1.0);
  for (double x = 0; x > -2; x -= 1e-5)
    ASSERT_NEAR(memfit::exponential(x), std::exp(x), 1e-15 * std::exp(x)) << x;
  for (double x = -2; x > -700; x -= 0.01)
    ASSERT_NEAR(memfit::exponential(x), std::exp(x), 1e-13 * std::exp(x)) << x;
  for (double x : {-700.5, -1e6, -HUGE_VAL}) EXPECT_EQ(memfit::exponential(x), 0.0);
}

}  // namespace
