// LB-04: element counts and offsets in 32 bits broke at 2^31 elements. Here: the geometry of the
// blocks around there; the run of that size itself is in lb_04_large.cpp.
#include <gtest/gtest.h>

#include <cstdint>

#include "memfit/quantize.hpp"

namespace {

template <int Block>
void has_geometry(std::int64_t n, std::int64_t blocks, std::int64_t last, std::int64_t tail) {
  EXPECT_EQ(memfit::block_count(n, Block), blocks) << n;
  EXPECT_EQ((memfit::block_count<memfit::blocked<memfit::float8, Block>>(n)), blocks) << n;
  EXPECT_EQ((memfit::block_count(n, Block) - 1) * Block, last) << n;
  EXPECT_EQ(n - (memfit::block_count(n, Block) - 1) * Block, tail) << n;
}

TEST(LB_04, blocks_beyond_32_bits) {
  constexpr std::int64_t two31 = std::int64_t{1} << 31;
  has_geometry<256>(two31 - 1, 8'388'608, 2'147'483'392, 255);
  has_geometry<256>(two31, 8'388'608, 2'147'483'392, 256);
  has_geometry<256>(two31 + 1, 8'388'609, 2'147'483'648, 1);
  has_geometry<256>(2 * two31 + 5, 16'777'217, 4'294'967'296, 5);
  has_geometry<64>(two31 / 2 + 1, 16'777'217, 1'073'741'824, 1);
}

}  // namespace
