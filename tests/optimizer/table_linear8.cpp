// The table's rows for moments kept in linear8: one and two moments.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::linear8;

TEST(table_linear8, momentum) {
  test::row<memfit::momentum, linear8>(test::table_momentum);
}
TEST(table_linear8, nesterov) {
  test::row<memfit::momentum, linear8>(test::table_nesterov);
}
TEST(table_linear8, adamw) {
  test::row<memfit::adamw, linear8>(test::table_adamw);
}
TEST(table_linear8, radam) {
  test::row_and_fp32<memfit::radam, linear8>(test::table_radam);
}
TEST(table_linear8, adagrad) {
  test::row_and_fp32<memfit::adagrad, linear8>(test::table_adagrad);
}

}  // namespace
