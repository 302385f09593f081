// The table's rows for moments kept in float8: every rule, and 16-bit parameters.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::bf16, memfit::fp16, memfit::float8;

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
TEST(table_float8, adamw_of_bf16) {
  test::row<memfit::adamw, float8, bf16>(test::table_adamw);
}
TEST(table_float8, adamw_of_split_bf16) {
  test::hidden_row<memfit::adamw, float8, memfit::split<bf16>>(test::table_adamw);
}
TEST(table_float8, adamw_of_corrected_bf16) {
  test::hidden_row<memfit::adamw, float8, memfit::corrected<bf16>>(test::table_adamw);
}
TEST(table_float8, adam_of_master_fp16) {
  test::hidden_row<memfit::adam, float8, memfit::master<fp16>>(test::table_adam);
}
TEST(table_float8, rmsprop) {
  test::row_and_fp32<memfit::rmsprop, float8>(test::table_rmsprop);
}
TEST(table_float8, lion_of_bf16) {
  test::row_and_fp32<memfit::lion, float8, bf16>(test::table_lion);
}
TEST(table_float8, ademamix) {
  test::row_and_fp32<memfit::ademamix, float8>(test::table_ademamix);
}
TEST(table_float8, amsgrad_of_bf16) {
  test::row_and_fp32<memfit::amsgrad, float8, bf16>(test::table_amsgrad);
}
TEST(table_float8, lamb) {
  test::row_and_fp32<memfit::lamb, float8>(test::table_lamb);
}
TEST(table_float8, lars_of_bf16) {
  test::row_and_fp32<memfit::lars, float8, bf16>(test::table_lars);
}

}  // namespace
