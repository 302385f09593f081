// CK-04: binomial schedules that are not optimal, or fail for few stages or slots.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memfit/checkpoint/plan.hpp"

namespace {

namespace plan = memfit::checkpoint;

std::int64_t choose(std::int64_t n, std::int64_t k) {
  std::int64_t product = 1;
  for (std::int64_t i = 1; i <= k; ++i) product = product * (n - k + i) / i;
  return product;
}

// Forwards beside the one run of each stage; the chain's input occupies a slot.
std::int64_t closed_form(std::int64_t stages, std::int64_t slots) {
  std::int64_t r = 0;
  while (choose(slots + r, slots) < stages) ++r;
  return r * stages - choose(slots + r, slots + 1);
}

std::int64_t passes(std::int64_t stages, std::int64_t slots) {
  plan::chain const equal(static_cast<std::size_t>(stages));
  return plan::revolve(equal, slots).forwards - stages;
}

TEST(CK_04, revolve_takes_the_passes_of_the_report) {
  struct expected {
    std::int64_t stages, slots, passes;
  };
  for (auto const& [n, s, e] : std::vector<expected>{{4, 4, 3},
                                                     {4, 1, 6},
                                                     {5, 2, 6},
                                                     {8, 2, 14},
                                                     {8, 3, 11},
                                                     {8, 4, 10},
                                                     {10, 3, 15},
                                                     {20, 3, 45},
                                                     {56, 5, 140},
                                                     {100, 10, 222}})
    EXPECT_EQ(passes(n, s), e) << n << " stages, " << s << " slots";
  std::vector<std::vector<std::int64_t>> const short_chains{
      {0, 1, 2, 4, 6, 8, 11, 14}, {0, 1, 2, 3, 5, 7, 9, 11}, {0, 1, 2, 3, 4, 6, 8, 10}};
  for (std::int64_t s = 2; s <= 4; ++s)
    for (std::int64_t n = 1; n <= 8; ++n)
      EXPECT_EQ(passes(n, s),
                short_chains[static_cast<std::size_t>(s - 2)][static_cast<std::size_t>(n - 1)]);
}

TEST(CK_04, revolve_equals_the_closed_form_for_200_stages_and_12_slots) {
  for (std::int64_t s = 1; s <= 12; ++s)
    for (std::int64_t n = 1; n <= 200; ++n)
      ASSERT_EQ(passes(n, s), closed_form(n, s)) << n << " stages, " << s << " slots";
}

// min over the first kept stage: pass to it, the rest with one slot less, then what lies before.
TEST(CK_04, the_closed_form_is_the_best_that_can_be_done) {
  constexpr std::size_t most_stages = 60, most_slots = 10;
  std::vector<std::vector<std::int64_t>> best(most_slots + 1,
                                              std::vector<std::int64_t>(most_stages + 1));
  for (std::size_t s = 1; s <= most_slots; ++s)
    for (std::size_t n = 2; n <= most_stages; ++n) {
      auto least = static_cast<std::int64_t>(n * (n - 1) / 2);
      for (std::size_t m = 1; m < n && s > 1; ++m)
        least = std::min(least, static_cast<std::int64_t>(m) + best[s - 1][n - m] + best[s][m]);
      best[s][n] = least;
      EXPECT_EQ(passes(static_cast<std::int64_t>(n), static_cast<std::int64_t>(s)), least);
    }
}

// Counted from the actions of two other planners: see golden/make_checkpoint_counts.py.
TEST(CK_04, revolve_takes_the_forwards_of_other_planners) {
  std::ifstream file(MEMFIT_TEST_GOLDEN "/checkpoint_counts.txt");
  ASSERT_TRUE(file) << "golden/checkpoint_counts.txt cannot be read";
  std::int64_t compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream row(line);
    std::int64_t slots = 0, forwards = 0;
    row >> slots;
    for (std::int64_t n = 1; row >> forwards; ++n, ++compared)
      ASSERT_EQ(passes(n, slots) + n, forwards) << n << " stages, " << slots << " slots";
  }
  EXPECT_EQ(compared, 12 * 200);
}

TEST(CK_04, no_schedule_holds_more_than_its_slots_or_reads_what_is_gone) {
  for (std::int64_t s = 1; s <= 10; ++s)
    for (std::int64_t n = 1; n <= 60; ++n) {
      plan::chain const equal(static_cast<std::size_t>(n));
      std::vector<bool> alive(static_cast<std::size_t>(n) + 1);
      alive[0] = true;
      std::int64_t reversed = n;
      for (auto const& a : plan::revolve(equal, s).actions) {
        auto const i = static_cast<std::size_t>(a.index);
        switch (a.what) {
          case plan::act::pass: {
            ASSERT_TRUE(alive[i]);
            // The activation in hand occupies no slot.
            ASSERT_LE(std::count(alive.begin(), alive.end(), true), s + 1);
            alive[i + 1] = true;
            break;
          }
          case plan::act::run:
            ASSERT_TRUE(alive[i]);
            if (a.output) alive[i + 1] = true;
            break;
          case plan::act::backward:
            ASSERT_EQ(a.index, --reversed);
            break;
          case plan::act::drop:
            ASSERT_TRUE(alive[i]);
            alive[i] = false;
            break;
          default:
            ASSERT_EQ(a.what, plan::act::turn);
        }
      }
      ASSERT_EQ(reversed, 0);
    }
}

// What counts for bytes rather than slots: equal stages under a budget for so many activations.
TEST(CK_04, a_budget_for_the_same_activations_is_no_slower) {
  for (std::int64_t n = 1; n <= 60; n += n < 12 ? 1 : 8)
    for (std::int64_t s = 1; s <= 6; ++s) {
      plan::chain const equal(
          static_cast<std::size_t>(n),
          {.output = 1, .forward = 1, .variants = {{.saved = 1, .forward = 1, .replay = 1}}});
      auto const binomial = plan::revolve(equal, s);
      EXPECT_LE(plan::within(equal, binomial.peak).time, binomial.time);
    }
}

}  // namespace
