// The table's rows for moments kept in float8 and fp32 parameters: every rule.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::float8;

TEST(table_float8, momentum) {
  test::row<memfit::momentum, float8>(test::table_momentum);
}
TEST(table_float8, nesterov) {
  test::row<memfit::momentum, float8>(test::table_nesterov);
}
TEST(table_float8, adam) {
  test::row<memfit::adam, float8>(test::table_adam);
}
TEST(table_float8, adamw) {
  test::row<memfit::adamw, float8>(test::table_adamw);
}

}  // namespace
