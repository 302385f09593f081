// What an accumulator refuses, and that a refused call has changed nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/exec/host.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::argument_error, memfit::gradient_accumulator;
using tensors = std::vector<std::vector<float>>;
using views = std::vector<memfit::tensor_ref<float>>;

class accumulator_refuses : public testing::Test {
 protected:
  std::vector<float> p = std::vector<float>(3), q = std::vector<float>(2);
  gradient_accumulator<> sums{memfit::host{1}, views{{p.data(), 3, "wte"}, {q.data(), 2, "wpe"}}};

  void SetUp() override { sums.add_sums(tensors{{1, 2, 3}, {4, 5}}, 2); }
  void TearDown() override {
    std::vector<float> all;
    for (auto const& t : sums) all.insert(all.end(), t.data, t.data + t.count);
    EXPECT_EQ(all, (std::vector<float>{1, 2, 3, 4, 5}));
    EXPECT_EQ(*sums.close().multiplier, 0.5f);
  }
};

TEST_F(accumulator_refuses, other_counts_of_tensors) {
  test::expect_refusal<argument_error>(
      [&] {
        sums.add(tensors{{1, 2, 3}}, 1);
      },
      {"gradient_accumulator::add", "1 gradients for 2"});
  test::expect_refusal<argument_error>(
      [&] {
        sums.add(tensors{{1, 2, 3}, {1, 2}, {1}}, 1);
      },
      {"3 gradients for 2"});
}
TEST_F(accumulator_refuses, other_counts_of_elements) {
  test::expect_refusal<argument_error>(
      [&] {
        sums.add_sums(tensors{{1, 2, 3}, {1}}, 1);
      },
      {"add_sums", "wpe", "1 elements, expected 2"});
}
TEST_F(accumulator_refuses, null_data) {
  test::expect_refusal<argument_error>(
      [&] {
        sums.add(views{{nullptr, 3}, {}}, 1);
      },
      {"wte", "null data"});
}
TEST_F(accumulator_refuses, its_own_sums) {
  test::expect_refusal<argument_error>([&] { sums.add(sums, 1); }, {"wte", "overlaps the sums"});
}
TEST_F(accumulator_refuses, numbers_of_items_that_are_none) {
  for (double items : {-1.0, std::nan(""), HUGE_VAL}) {
    test::expect_refusal<argument_error>(
        [&] {
          sums.add(tensors{{1, 2, 3}, {1, 2}}, items);
        },
        {"add", "items"});
    test::expect_refusal<argument_error>([&] { sums.added(items); }, {"added", "items"});
  }
}
TEST_F(accumulator_refuses, to_zero_constant_gradients) {
  std::vector<memfit::tensor_ref<float const>> const constant{{p.data(), 3}, {q.data(), 2}};
  test::expect_refusal<argument_error>([&] { sums.add(constant, 1, memfit::after_add::zero); },
                                       {"constant"});
}
TEST_F(accumulator_refuses, sums_that_are_not_there) {
  test::expect_refusal<argument_error>([&] { sums.sums(2); }, {"sums", "tensor 2 of 2"});
}

TEST(accumulator_refusals, a_tensor_of_less_than_no_elements) {
  test::expect_refusal<argument_error>(
      [] {
        gradient_accumulator(memfit::host{1}, views{{nullptr, -1, "wte"}});
      },
      {"wte", "-1"});
}

}  // namespace
