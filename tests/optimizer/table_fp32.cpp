// The table's rows for moments kept in fp32: every rule, and 16-bit parameters.
// One file per format, so that they build in parallel.
#include "optimizer/table.hpp"

namespace {

using memfit::bf16, memfit::fp16, memfit::fp32;

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
TEST(table_fp32, sgd_of_bf16) {
  test::row<memfit::sgd, fp32, bf16>(test::table_sgd);
}
TEST(table_fp32, sgd_of_stochastic_bf16) {
  test::row<memfit::sgd, fp32, memfit::stochastic<bf16>>(test::table_sgd);
}
TEST(table_fp32, adamw_of_fp16) {
  test::row<memfit::adamw, fp32, fp16>(test::table_adamw);
}
TEST(table_fp32, momentum_of_split_fp16) {
  test::hidden_row<memfit::momentum, fp32, memfit::split<fp16>>(test::table_momentum);
}
TEST(table_fp32, rmsprop_of_bf16) {
  test::row<memfit::rmsprop, fp32, bf16>(test::table_rmsprop);
}
TEST(table_fp32, adagrad_of_fp16) {
  test::row<memfit::adagrad, fp32, fp16>(test::table_adagrad);
}
TEST(table_fp32, lion) {
  test::row<memfit::lion, fp32>(test::table_lion);
}

}  // namespace
