// The table's rows for moments kept in bf16: one and two moments.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::bf16;

TEST(table_bf16, momentum) {
  test::row<memfit::momentum, bf16>(test::table_momentum);
}
TEST(table_bf16, nesterov) {
  test::row<memfit::momentum, bf16>(test::table_nesterov);
}
TEST(table_bf16, adamw) {
  test::row<memfit::adamw, bf16>(test::table_adamw);
}

}  // namespace
