// The table's rows for other block sizes than the usual one: several to a unit of work, and larger
// than it. One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::blocked, memfit::dynamic8, memfit::float8;

TEST(table_blocked, adamw_in_blocks_of_64) {
  test::row<memfit::adamw, blocked<float8, 64>>(test::table_adamw);
}
TEST(table_blocked, momentum_in_blocks_of_1024) {
  test::row<memfit::momentum, blocked<dynamic8, 1024>>(test::table_momentum);
}

}  // namespace
