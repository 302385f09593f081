// The table's rows for moments kept in dynamic8: every rule, and 16-bit parameters.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::bf16, memfit::fp16, memfit::dynamic8;

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
TEST(table_dynamic8, nesterov_of_fp16) {
  test::row<memfit::momentum, dynamic8, fp16>(test::table_nesterov);
}
TEST(table_dynamic8, adam_of_stochastic_bf16) {
  test::row<memfit::adam, dynamic8, memfit::stochastic<bf16>>(test::table_adam);
}
TEST(table_dynamic8, adamw_of_master_bf16) {
  test::hidden_row<memfit::adamw, dynamic8, memfit::master<bf16>>(test::table_adamw);
}
TEST(table_dynamic8, amsgradw) {
  test::row_and_fp32<memfit::amsgradw, dynamic8>(test::table_amsgradw);
}
TEST(table_dynamic8, nadam) {
  test::row_and_fp32<memfit::nadam, dynamic8>(test::table_nadam);
}
TEST(table_dynamic8, signum_of_stochastic_bf16) {
  test::row_and_fp32<memfit::signum, dynamic8, memfit::stochastic<bf16>>(test::table_signum);
}

}  // namespace
