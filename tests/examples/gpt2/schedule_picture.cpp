// Pictures of checkpoint schedules: what every sign stands for, what widths do, and that the bytes
// drawn are those of the plan.
#include "schedule_picture.hpp"

#include <algorithm>
#include <random>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "memfit/checkpoint/plan.hpp"
#include "schedule_state.hpp"

namespace {

namespace ck = memfit::checkpoint;

ck::chain stages(std::size_t count) {
  return ck::chain(count, {.output = 1000,
                           .gradient = 500,
                           .forward = 1,
                           .scratch = 300,
                           .variants = {{.saved = 7000, .forward = 1, .backward_scratch = 400}}});
}

std::vector<std::string> lines(const std::string& text) {
  std::istringstream in{text};
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

std::size_t characters(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

TEST(schedule_picture, shows_each_sweep_in_a_row) {
  auto const rows = lines(gpt2::picture(stages(5), ck::every(stages(5), 2), 80));
  std::vector<std::string> const cells{"▷▷▷▷▶", "··○·◀", "··▶▶·", "··◀◀·", "▶▶···", "◀◀···"};
  ASSERT_EQ(rows.size(), cells.size() + 1);
  for (std::size_t i = 0; i < cells.size(); ++i)
    EXPECT_NE(rows[i + 1].find(cells[i]), std::string::npos) << rows[i + 1];
}

TEST(schedule_picture, shows_what_is_saved_and_what_is_stored_elsewhere) {
  using ck::act;
  auto const chain = stages(3);
  auto const plan = ck::check(chain, {{act::run, 0},
                                      {act::pass, 1},
                                      {act::store, 1},
                                      {act::drop, 1},
                                      {act::run, 2},
                                      {act::turn, 0},
                                      {act::drop, 3},
                                      {act::backward, 2},
                                      {act::drop, 2},
                                      {act::load, 1},
                                      {act::discard, 1},
                                      {act::run, 1, 0, false},
                                      {act::backward, 1},
                                      {act::drop, 1},
                                      {act::backward, 0}});
  auto const rows = lines(gpt2::picture(chain, plan, 80));
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_NE(rows[2].find("█◌◀"), std::string::npos) << rows[2];
  EXPECT_NE(rows[3].find("█▶·"), std::string::npos) << rows[3];
}

TEST(schedule_picture, keeps_to_its_width_and_says_what_is_cut) {
  for (std::size_t n : {1, 7, 50, 300})
    for (int width : {40, 80, 200}) {
      auto const rows = lines(gpt2::picture(stages(n), ck::recompute_all(stages(n)), width));
      for (std::size_t i = 2; i < rows.size(); ++i)
        EXPECT_LE(characters(rows[i]), static_cast<std::size_t>(width)) << rows[i];
      EXPECT_EQ(rows.back().find("rows more") != std::string::npos, n >= 300) << n;
    }
}

TEST(schedule_picture, draws_a_chain_of_no_stages) {
  EXPECT_NE(gpt2::svg({}, ck::keep_all({})).find("</svg>"), std::string::npos);
  EXPECT_FALSE(gpt2::picture({}, ck::keep_all({}), 80).empty());
}

TEST(schedule_picture, svg_has_a_cell_for_every_forward_and_backward) {
  auto const chain = stages(9);
  for (auto const& plan : {ck::keep_all(chain), ck::sqrt_n(chain), ck::revolve(chain, 2)}) {
    auto const drawn = gpt2::svg(chain, plan);
    auto const count = [&](const std::string& color) {
      std::int64_t n = 0;
      for (auto at = drawn.find(color); at != std::string::npos; at = drawn.find(color, at + 1))
        ++n;
      return n - 1;  // the legend has one, too
    };
    EXPECT_EQ(count("'#a1d99b'") + count("'#31a354'"), plan.forwards);
    EXPECT_EQ(count("'#e6550d'"), 9);
  }
}

TEST(schedule_picture, bytes_in_use_peak_where_the_plan_says) {
  std::mt19937 random{3};
  for (int trial = 0; trial < 20; ++trial) {
    ck::chain chain(1 + random() % 9);
    for (auto& s : chain) {
      s = {.output = static_cast<std::int64_t>(random() % 1000),
           .gradient = static_cast<std::int64_t>(random() % 1000),
           .forward = 1,
           .scratch = static_cast<std::int64_t>(random() % 1000)};
      s.variants[0] = {.saved = static_cast<std::int64_t>(random() % 5000),
                       .forward = 1,
                       .backward = 2,
                       .backward_scratch = static_cast<std::int64_t>(random() % 2000)};
    }
    for (auto const& plan : ck::trade(chain, 5)) {
      gpt2::schedule_state state{chain};
      std::int64_t peak = 0;
      for (auto const& a : plan.actions) peak = std::max(peak, state.apply(a));
      EXPECT_EQ(peak, plan.peak);
    }
  }
}

}  // namespace
