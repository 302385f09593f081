// The table's rows for moments kept in dynamic8 and fp32 parameters: every rule.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::dynamic8;

TEST(table_dynamic8, momentum) {
  test::row<memfit::momentum, dynamic8>(test::table_momentum);
}
TEST(table_dynamic8, nesterov) {
  test::row<memfit::momentum, dynamic8>(test::table_nesterov);
}
TEST(table_dynamic8, adam) {
  test::row<memfit::adam, dynamic8>(test::table_adam);
}
TEST(table_dynamic8, adamw) {
  test::row<memfit::adamw, dynamic8>(test::table_adamw);
}

}  // namespace
