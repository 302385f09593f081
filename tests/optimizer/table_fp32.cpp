// The table's rows for moments kept in fp32 and fp32 parameters: every rule.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::fp32;

TEST(table_fp32, sgd) {
  test::row<memfit::sgd, fp32>(test::table_sgd);
}
TEST(table_fp32, momentum) {
  test::row<memfit::momentum, fp32>(test::table_momentum);
}
TEST(table_fp32, nesterov) {
  test::row<memfit::momentum, fp32>(test::table_nesterov);
}
TEST(table_fp32, adam) {
  test::row<memfit::adam, fp32>(test::table_adam);
}
TEST(table_fp32, adamw) {
  test::row<memfit::adamw, fp32>(test::table_adamw);
}

}  // namespace
