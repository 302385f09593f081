// How blocks are coded, the same whichever way a driver takes: careful or quick.
#include "memfit/exec/block.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/small_float.hpp"

namespace {

using memfit::detail::normalizer, memfit::detail::ordinary_scale;

TEST(normalizer, takes_one_way_under_ordinary_scales) {
  for (int e = -100; e <= 100; e += 4) {
    float const scale = std::ldexp(1.37f, e);
    if (!ordinary_scale(std::bit_cast<std::uint32_t>(scale))) continue;
    normalizer<float, false> const quick(scale);
    normalizer<float, true> const careful(scale);
    for (int below = 0; below < 149; ++below) {
      float const x = std::ldexp(-1.2345678f, e - below);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(quick(x)), std::bit_cast<std::uint32_t>(careful(x)))
          << x << " under " << scale;
    }
  }
}

TEST(normalizer, brings_extreme_blocks_to_one) {
  for (float scale : {0x1p-149f, 0x1.8p-140f, 0x1p-126f, 0x1.fffffep127f, 0x1p120f}) {
    normalizer<float, true> const normalize(scale);
    EXPECT_EQ(normalize(scale), 1.0f) << scale;
    EXPECT_EQ(normalize(-scale), -1.0f) << scale;
  }
}

TEST(moment_value, is_zero_under_no_scale_and_above_zero_under_any_other) {
  using memfit::detail::moment_value, memfit::range;
  for (std::uint32_t c = 0; c < 256; ++c) {
    EXPECT_EQ((moment_value<memfit::ue5m3_codec, range::non_negative>(c, 0.0f)), 0.0f);
    EXPECT_EQ((moment_value<memfit::dynamic_unsigned_codec, range::non_negative>(c, 0.0f)), 0.0f);
    EXPECT_EQ((moment_value<memfit::ue5m3_codec, range::non_negative>(c, 0x1p-149f)) > 0, c > 0);
  }
}

}  // namespace
