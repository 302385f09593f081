// Rules beyond those that every format's table steps: each with an 8-bit format, the formats and
// the parameter columns spread over them.
#include "cuda/table.cuh"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/rule/ademamix.hpp"
#include "memfit/rule/amsgrad.hpp"
#include "memfit/rule/layerwise.hpp"
#include "memfit/rule/nadam.hpp"
#include "memfit/rule/radam.hpp"
#include "memfit/rule/root.hpp"
#include "memfit/rule/sign.hpp"

namespace test {

template <>
inline memfit::amsgrad unusual() {
  return {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
}
template <>
inline memfit::amsgradw unusual() {
  return {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
}
template <>
inline memfit::nadam unusual() {
  return {.lr = 0.02,
          .beta1 = 0.8,
          .beta2 = 0.95,
          .eps = 1e-3,
          .weight_decay = 0.1,
          .momentum_decay = 0.3};
}
template <>
inline memfit::radam unusual() {
  return {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
}
/// Both warm-ups end within the steps of the table.
template <>
inline memfit::ademamix unusual() {
  return {.lr = 0.02,
          .beta1 = 0.8,
          .beta2 = 0.95,
          .beta3 = 0.99,
          .alpha = 3,
          .eps = 1e-3,
          .weight_decay = 0.1,
          .alpha_warmup = 20,
          .beta3_warmup = 30};
}
template <>
inline memfit::rmsprop unusual() {
  return {.lr = 0.02, .alpha = 0.9, .eps = 1e-3, .weight_decay = 0.1};
}
template <>
inline memfit::adagrad unusual() {
  return {.lr = 0.02, .lr_decay = 0.3, .eps = 1e-3, .weight_decay = 0.1};
}
template <>
inline memfit::lion unusual() {
  return {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1};
}
template <>
inline memfit::signum unusual() {
  return {.lr = 0.02, .momentum = 0.8, .weight_decay = 0.1};
}
template <>
inline memfit::lamb unusual() {
  return {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
}
template <>
inline memfit::lars unusual() {
  return {.lr = 0.5, .momentum = 0.8, .weight_decay = 0.1, .trust_coefficient = 0.01, .eps = 1e-3};
}

}  // namespace test

namespace {

using memfit::bf16, memfit::fp16, memfit::fp32, memfit::dynamic8, memfit::float8;

template <class Rule, class Format, class Param>
void row() {
  test::table_row_test<Rule, Format, memfit::column_for<Param>>().run();
}

TEST(cuda_table_rules, amsgrad) {
  row<memfit::amsgrad, dynamic8, fp32>();
}
TEST(cuda_table_rules, amsgradw) {
  row<memfit::amsgradw, float8, memfit::split<bf16>>();
}
TEST(cuda_table_rules, amsgradw_in_fp32) {
  row<memfit::amsgradw, fp32, bf16>();
}
TEST(cuda_table_rules, nadam) {
  row<memfit::nadam, float8, memfit::stochastic<memfit::corrected<bf16>>>();
}
TEST(cuda_table_rules, radam) {
  row<memfit::radam, dynamic8, memfit::stochastic<bf16>>();
}
TEST(cuda_table_rules, ademamix) {
  row<memfit::ademamix, float8, memfit::master<bf16>>();
}
TEST(cuda_table_rules, rmsprop) {
  row<memfit::rmsprop, dynamic8, bf16>();
}
TEST(cuda_table_rules, adagrad) {
  row<memfit::adagrad, float8, memfit::corrected<bf16>>();
}
TEST(cuda_table_rules, lion) {
  row<memfit::lion, dynamic8, memfit::split<fp16>>();
}
TEST(cuda_table_rules, signum) {
  row<memfit::signum, float8, memfit::corrected<fp16>>();
}
TEST(cuda_table_rules, lamb) {
  row<memfit::lamb, dynamic8, memfit::split<bf16>>();
}
TEST(cuda_table_rules, lars) {
  row<memfit::lars, float8, fp32>();
}

}  // namespace
