// tensor_ref and tensor_traits: counts from shapes, views of users' types, refusals.
// What every function that takes tensors builds on.
#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "memfit/core/tensor.hpp"

namespace {

struct grid {
  std::string name;
  std::vector<float> cells;
};

}  // namespace

template <>
struct memfit::tensor_traits<grid> {
  static tensor_ref<float> ref(grid& g) {
    return {g.cells.data(), static_cast<std::int64_t>(g.cells.size()), g.name};
  }
  static tensor_ref<float const> ref(grid const& g) {
    return {g.cells.data(), static_cast<std::int64_t>(g.cells.size()), g.name};
  }
};

namespace {

static_assert(memfit::tensor<grid>);
static_assert(memfit::tensor<std::vector<float>>);
static_assert(memfit::tensor<std::vector<memfit::bf16> const>);
static_assert(memfit::tensor<std::span<float const>>);
static_assert(!memfit::tensor<int>);
static_assert(std::is_same_v<memfit::element_of<grid const>, float>);

TEST(tensor_ref, counts_the_whole_shape) {
  std::vector<float> data(30);
  EXPECT_EQ(memfit::tensor_ref<float>(data.data(), {3, 5}).count, 15);
  EXPECT_EQ(memfit::tensor_ref<float>(data.data(), {2, 3, 5}, "w").count, 30);
  EXPECT_EQ(memfit::tensor_ref<float>(data.data(), {2, 0, 5}).count, 0);
  EXPECT_EQ(memfit::tensor_ref<float>(data.data(), {7}).count, 7);
  EXPECT_EQ((memfit::tensor_ref<float>(data.data(), {std::int64_t{1} << 31, 4}).count),
            std::int64_t{1} << 33);
}

TEST(tensor_ref, refuses_negative_and_overflowing_shapes_by_name) {
  auto const message = [](std::initializer_list<std::int64_t> extents) -> std::string {
    try {
      memfit::tensor_ref<float>(nullptr, extents, "wte");
    } catch (memfit::argument_error const& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message({3, -1}).find("wte"), std::string::npos);
  EXPECT_NE(message({std::int64_t{1} << 32, std::int64_t{1} << 32}).find("wte"), std::string::npos);
  EXPECT_NE(message({std::numeric_limits<std::int64_t>::max(), 2}).find("wte"), std::string::npos);
}

TEST(tensor_traits, sees_a_users_type) {
  grid g{"cells", {1, 2, 3}};
  auto const view = memfit::ref(g);
  EXPECT_EQ(view.data, g.cells.data());
  EXPECT_EQ(view.count, 3);
  EXPECT_EQ(view.name, "cells");
  grid const& constant = g;
  static_assert(std::is_same_v<decltype(memfit::ref(constant)), memfit::tensor_ref<float const>>);
  memfit::tensor_ref<float const> const widened = view;
  EXPECT_EQ(widened.name, "cells");
}

}  // namespace
