// The table's rows for moments kept in fp16: one and two moments.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::fp16;

TEST(table_fp16, momentum) {
  test::row<memfit::momentum, fp16>(test::table_momentum);
}
TEST(table_fp16, nesterov) {
  test::row<memfit::momentum, fp16>(test::table_nesterov);
}
TEST(table_fp16, adam) {
  test::row<memfit::adam, fp16>(test::table_adam);
}

}  // namespace
