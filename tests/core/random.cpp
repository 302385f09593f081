// The counter-based noise that stochastic rounding draws: uniform, and unrelated between elements,
// tensors and steps, also beyond 2^32 elements.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>

#include "memfit/core/random.hpp"

namespace {

constexpr int count = 1 << 20;

bool quarter(memfit::noise_key key, std::uint32_t index) {
  return memfit::noise(key, index) < 0x40000000u;
}

TEST(noise, hits_a_quarter_of_the_range_a_quarter_of_the_time) {
  auto const key = memfit::make_noise_key(1, 1, 0);
  int ups = 0;
  for (std::uint32_t i = 0; i < count; ++i) ups += quarter(key, i);
  EXPECT_NEAR(ups, 262144, 2661);
}

TEST(noise, neighbours_at_any_stride_are_independent) {
  auto const key = memfit::make_noise_key(1, 1, 0);
  for (std::uint32_t stride : {1u, 2u, 4u, 8u, 32u, 256u, 1024u}) {
    int both = 0;
    for (std::uint32_t i = 0; i < count; ++i) both += quarter(key, i) && quarter(key, i + stride);
    EXPECT_NEAR(both, 65536, 1760) << "stride " << stride;
  }
}

TEST(noise, tensors_steps_and_seeds_are_independent) {
  auto const key = memfit::make_noise_key(1, 1, 0);
  for (auto const other : {memfit::make_noise_key(1, 1, 1), memfit::make_noise_key(1, 2, 0),
                           memfit::make_noise_key(2, 1, 0), memfit::fold_high(key, 1ll << 32)}) {
    int agree = 0;
    for (std::uint32_t i = 0; i < count; ++i) agree += quarter(key, i) == quarter(other, i);
    EXPECT_NEAR(agree, 655360, 2975);
  }
}

TEST(noise, keys_of_a_large_run_are_distinct) {
  std::set<std::uint64_t> keys;
  for (std::int64_t step = 0; step < 300; ++step) {
    for (std::int64_t tensor = 0; tensor < 300; ++tensor) {
      auto const key = memfit::make_noise_key(42, step, tensor);
      keys.insert(std::uint64_t{key.first} << 32 | key.second);
    }
  }
  EXPECT_EQ(keys.size(), 90000u);
}

TEST(noise, high_half_of_the_index_matters_only_above_32_bits) {
  auto const key = memfit::make_noise_key(1, 1, 0);
  auto const low = memfit::fold_high(key, 5), also_low = memfit::fold_high(key, (1ll << 32) - 1);
  EXPECT_EQ(low.second, also_low.second);
  EXPECT_NE(low.second, memfit::fold_high(key, 1ll << 32).second);
}

}  // namespace
