// Buffers of known lifetimes: none overlap while alive, and no byte is lost where they nest.
#include "memfit/checkpoint/run/layout.hpp"

#include <gtest/gtest.h>

#include <random>

namespace {

using memfit::checkpoint::detail::block, memfit::checkpoint::detail::place;

bool overlap(block const& a, block const& b) {
  return a.born <= b.dies && b.born <= a.dies && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

/// Most bytes alive during an action.
std::int64_t peak_of(std::vector<block> const& blocks) {
  std::int64_t peak = 0;
  for (auto const& at : blocks) {
    std::int64_t alive = 0;
    for (auto const& b : blocks)
      if (b.born <= at.born && at.born <= b.dies) alive += b.bytes;
    peak = std::max(peak, alive);
  }
  return peak;
}

void expect_apart(std::vector<block> const& blocks, std::int64_t total) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(blocks[i].offset, 0);
    EXPECT_LE(blocks[i].offset + blocks[i].bytes, total);
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(blocks[i], blocks[j]));
  }
}

TEST(checkpoint_layout, any_lifetimes_are_kept_apart) {
  std::mt19937 dice(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<block> blocks;
    for (auto n = dice() % 30; n > 0; --n) {
      std::int64_t const born = dice() % 40;
      blocks.push_back({1 + static_cast<std::int64_t>(dice() % 50), born,
                        born + static_cast<std::int64_t>(dice() % 20), 0});
    }
    auto const total = place(blocks);
    EXPECT_GE(total, peak_of(blocks));
    expect_apart(blocks, total);
  }
}

TEST(checkpoint_layout, lifetimes_of_two_stacks_lose_no_byte) {
  std::mt19937 dice(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<block> blocks;
    std::vector<std::size_t> stack[2];
    for (std::int64_t now = 0; now < 60; ++now) {
      auto& top = stack[dice() % 2];
      if (dice() % 2 == 0 && !top.empty()) {
        blocks[top.back()].dies = now;
        top.pop_back();
      } else {
        top.push_back(blocks.size());
        blocks.push_back({1 + static_cast<std::int64_t>(dice() % 50), now, 60, 0});
      }
    }
    auto const total = place(blocks);
    EXPECT_EQ(total, peak_of(blocks));
    expect_apart(blocks, total);
  }
}

TEST(checkpoint_layout, a_choice_of_side_that_later_blocks_decide_is_made_right) {
  // The fourth crosses the third, the fifth the fourth and the second: the third cannot be on the
  // second, although it fits there.
  std::vector<block> blocks{
      {8, 0, 30, 0}, {8, 1, 20, 0}, {8, 2, 10, 0}, {8, 3, 15, 0}, {8, 12, 25, 0}};
  EXPECT_EQ(place(blocks), 32);
  expect_apart(blocks, 32);
}

TEST(checkpoint_layout, three_that_cross_each_other_fit_all_the_same) {
  std::vector<block> blocks{{8, 0, 3, 0}, {8, 1, 4, 0}, {8, 2, 5, 0}, {16, 6, 7, 0}};
  EXPECT_EQ(place(blocks), 24);
  expect_apart(blocks, 24);
}

TEST(checkpoint_layout, nothing_takes_nothing) {
  std::vector<block> none;
  EXPECT_EQ(place(none), 0);
}

}  // namespace
