#include "cuda/table.cuh"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/small_float.hpp"

namespace {

using memfit::blocked, memfit::float8;

/// Blocks below, at and above what threads, runs and tiles hold.
template <class Format>
void block() {
  test::table_row_test<memfit::adamw, Format, memfit::column_for<memfit::fp32>>().run();
}

TEST(cuda_table_blocked, of_32) {
  block<blocked<float8, 32>>();
}
TEST(cuda_table_blocked, of_64) {
  block<blocked<memfit::linear8, 64>>();
}
TEST(cuda_table_blocked, of_128) {
  block<blocked<memfit::dynamic8, 128>>();
}
TEST(cuda_table_blocked, of_512) {
  block<blocked<float8, 512>>();
}
TEST(cuda_table_blocked, of_1024) {
  block<blocked<memfit::dynamic8, 1024>>();
}
TEST(cuda_table_blocked, of_4096) {
  block<blocked<float8, 4096>>();
}

}  // namespace
