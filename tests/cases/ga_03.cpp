// GA-03: sums of gradients in bf16 stopped growing, as every further term was below half a unit in
// the last place.
// Here: sums are fp32, exact in two parts, or rounded at random and so right in the mean.
#include <gtest/gtest.h>

#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/exec/host.hpp"

namespace {

using gradients = std::vector<std::vector<memfit::bf16>>;

constexpr std::size_t elements = 4096;
gradients all(float x) {
  return {std::vector<memfit::bf16>(elements, memfit::bf16(x))};
}

/// The sums after `first`, and `count` times `next`.
template <class Param>
std::vector<float> sums(float first, float next, int count) {
  memfit::gradient_accumulator<Param> sums(memfit::host{2}, all(0), {.seed = 3});
  sums.add_sums(all(first), 1);
  for (int i = 0; i < count; ++i) sums.add_sums(all(next), 1);
  std::vector<float> out;
  for (std::size_t i = 0; i < elements; ++i)
    out.push_back(static_cast<float>(sums.begin()->data[i]));
  EXPECT_EQ(*sums.close().multiplier, 1.0f / static_cast<float>(count + 1));
  return out;
}

double mean(std::vector<float> const& values) {
  double sum = 0;
  for (float x : values) sum += static_cast<double>(x);
  return sum / static_cast<double>(values.size());
}

TEST(ga_03, fp32_sums_are_exact) {
  EXPECT_EQ(sums<memfit::fp32>(1, 1, 511), std::vector<float>(elements, 512));
  EXPECT_EQ(sums<memfit::fp32>(1, 0x1p-9f, 1000), std::vector<float>(elements, 2.953125f));
}

TEST(ga_03, sums_in_two_parts_are_exact_to_the_last_bit_that_bf16_shows) {
  EXPECT_EQ(sums<memfit::split<memfit::bf16>>(1, 1, 511), std::vector<float>(elements, 512));
  EXPECT_EQ(sums<memfit::split<memfit::bf16>>(1, 0x1p-9f, 1000),
            std::vector<float>(elements, static_cast<float>(memfit::bf16(2.953125f))));
}

TEST(ga_03, sums_of_24_bits_grow_as_long_as_a_term_is_half_their_unit) {
  using column = memfit::corrected<memfit::bf16>;
  EXPECT_EQ(sums<column>(1, 1, 511), std::vector<float>(elements, 512));
  EXPECT_EQ(sums<column>(1, 0x1p-9f, 1000),
            std::vector<float>(elements, static_cast<float>(memfit::bf16(2.953125f))));
}

TEST(ga_03, sums_rounded_at_random_are_right_in_the_mean) {
  EXPECT_NEAR(mean(sums<memfit::stochastic<memfit::bf16>>(1, 1, 511)), 512, 5.12);
  EXPECT_NEAR(mean(sums<memfit::stochastic<memfit::bf16>>(1, 0x1p-9f, 1000)), 2.953125, 0.0295);
}

TEST(ga_03, plain_bf16_would_stop_growing) {
  float sum = 1;
  for (int i = 0; i < 1000; ++i) sum = static_cast<float>(memfit::bf16(sum + 0x1p-9f));
  EXPECT_EQ(sum, 1.0f);
}

}  // namespace
