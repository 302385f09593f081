// What a format chooses for each slot: blocks, short scales, half bytes and random rounding, alone
// and side by side.
#include "cuda/table.cuh"
#include "memfit/codec/companded.hpp"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/packed4.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/codec/small_float.hpp"

namespace {

using memfit::bf16, memfit::fp32, memfit::blocked, memfit::dynamic8, memfit::float8;
using memfit::per_slot, memfit::stochastic;

template <class Format, class Param = fp32>
void row() {
  test::table_row_test<memfit::adamw, Format, memfit::column_for<Param>>().run();
}

TEST(cuda_table_slots, root8) {
  row<memfit::root8>();
}
TEST(cuda_table_slots, companded8) {
  row<memfit::companded8>();
}
TEST(cuda_table_slots, packed4) {
  row<memfit::packed4, memfit::split<bf16>>();
}
TEST(cuda_table_slots, rounded_at_random) {
  row<stochastic<float8>, stochastic<bf16>>();
}
TEST(cuda_table_slots, blocks_within_a_tile) {
  row<per_slot<stochastic<bf16>, blocked<memfit::packed4, 32>>>();
}
TEST(cuda_table_slots, blocks_of_several_tiles) {
  row<per_slot<blocked<memfit::companded8, 512>, blocked<float8, 2048>>>();
}
TEST(cuda_table_slots, many_blocks_in_a_unit) {
  row<per_slot<blocked<dynamic8, 4096>, blocked<memfit::packed4, 64>>, bf16>();
}

}  // namespace
