// Budgets: against every schedule there is for short chains, against the other planners for long
// ones.
#include <chrono>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "memfit/checkpoint/plan.hpp"
#include "reference_plan.hpp"

namespace {

using namespace test;

std::string described(plan::chain const& stages) {
  std::ostringstream text;
  for (auto const& s : stages) {
    text << '{' << s.output << ',' << s.gradient << ',' << s.forward << ',' << s.scratch << ','
         << s.reads_output << ",{";
    for (auto const& v : s.variants)
      text << '{' << v.saved << ',' << v.forward << ',' << v.replay << ',' << v.backward << ','
           << v.forward_scratch << ',' << v.backward_scratch << "},";
    text << "}},";
  }
  return text.str();
}

void expect_proven(plan::chain const& stages, plan::schedule const& s, std::int64_t bandwidth = 1) {
  simulation all(stages, bandwidth);
  for (auto const& a : s.actions) all.apply(a);
  EXPECT_TRUE(all.finished());
  EXPECT_EQ(all.peak, s.peak);
  EXPECT_EQ(all.second_peak, s.second_peak);
  EXPECT_EQ(all.time, s.time);
  EXPECT_EQ(all.forwards, s.forwards);
}

template <class Plan>
void expect_refused(Plan const& plan, std::int64_t least) {
  try {
    plan();
    ADD_FAILURE() << "a budget below " << least << " was accepted";
  } catch (memfit::argument_error const& e) {
    EXPECT_NE(std::string(e.what()).find("the least that works is " + std::to_string(least)),
              std::string::npos)
        << e.what();
  }
}

TEST(checkpoint_within, equals_exhaustive_search_on_500_chains) {
  random_chains chains{std::mt19937_64{11}};
  for (int trial = 0; trial < 500; ++trial) {
    auto const count = 1 + trial % 8;
    auto const stages = chains(count, count <= 4 ? 3 : count <= 6 ? 2 : 1);
    SCOPED_TRACE(described(stages));
    auto const best = every_schedule(stages).best();
    ASSERT_EQ(plan::least_bytes(stages), best.front().first);
    if (best.front().first > 0)
      expect_refused([&] { return plan::within(stages, best.front().first - 1); },
                     best.front().first);
    for (std::size_t i = 0; i < best.size(); i += 1 + best.size() / 6) {
      auto const [peak, time] = best[i];
      auto const exact = plan::within(stages, peak);
      ASSERT_LE(exact.peak, peak);
      ASSERT_EQ(exact.time, time);
      expect_proven(stages, exact);
      if (i > 0) {
        ASSERT_EQ(plan::within(stages, peak - 1).time, best[i - 1].second);
      }
    }
    ASSERT_EQ(plan::within(stages, INT64_MAX).time, best.back().second);
    auto const whole = plan::trade(stages, 20);
    ASSERT_EQ(whole.front().peak, best.front().first);
    ASSERT_EQ(whole.back().time, best.back().second);
  }
}

TEST(checkpoint_within, a_second_place_equals_exhaustive_search) {
  random_chains chains{std::mt19937_64{12}};
  for (int trial = 0; trial < 300; ++trial) {
    auto stages = chains(2 + trial % 5, trial % 5 < 3 ? 2 : 1);
    for (auto& s : stages) s.reads_output = false;
    std::int64_t all = 0;
    for (auto const& s : stages) all += s.output;
    auto const bandwidth = chains.draw(1, 1 + all / 50);
    for (auto const second : {all, all / 2, all / 5, std::int64_t{0}}) {
      SCOPED_TRACE(described(stages) + " " + std::to_string(second) + " " +
                   std::to_string(bandwidth));
      auto const best = every_schedule(stages, second, bandwidth).best();
      for (std::size_t i = 0; i < best.size(); i += 1 + best.size() / 4) {
        auto const found = plan::within(stages, best[i].first, second, bandwidth);
        ASSERT_LE(found.peak, best[i].first);
        ASSERT_LE(found.second_peak, second);
        ASSERT_EQ(found.time, best[i].second);
        expect_proven(stages, found, bandwidth);
      }
      if (best.front().first > 0)
        expect_refused(
            [&] { return plan::within(stages, best.front().first - 1, second, bandwidth); },
            best.front().first);
    }
  }
}

// With outputs that backwards read, what may be stored depends on more: the figures must be true
// all the same, and a second place never makes a plan slower.
TEST(checkpoint_within, a_second_place_is_never_slower_and_its_limit_is_hard) {
  random_chains chains{std::mt19937_64{13}};
  for (int trial = 0; trial < 40; ++trial) {
    auto const stages = chains(1 + trial / 2, 2);
    auto const least = plan::least_bytes(stages), most = plan::keep_all(stages).peak;
    auto const budget = chains.draw(least, std::max(least, most));
    auto const second = chains.draw(0, budget), bandwidth = chains.draw(1, 100'000);
    SCOPED_TRACE(described(stages) + " " + std::to_string(budget));
    auto const alone = plan::within(stages, budget);
    auto const both = plan::within(stages, budget, second, bandwidth);
    EXPECT_LE(alone.peak, budget);
    EXPECT_LE(both.peak, budget);
    EXPECT_LE(both.second_peak, second);
    EXPECT_LE(both.time, alone.time);
    expect_proven(stages, alone);
    expect_proven(stages, both, bandwidth);
  }
}

void expect_no_simple_plan_is_faster(plan::chain const& stages, std::int64_t budget) {
  auto const found = plan::within(stages, budget);
  EXPECT_LE(found.peak, budget);
  expect_proven(stages, found);
  auto const compare = [&](plan::schedule const& other, char const* name, std::int64_t k) {
    if (other.peak <= budget) {
      EXPECT_LE(found.time, other.time) << name << " " << k << " within " << budget;
    }
  };
  auto const n = static_cast<std::int64_t>(stages.size());
  for (std::int64_t k = 1; k <= n; ++k) {
    compare(plan::every(stages, k), "every", k);
    if (k <= 20 || k % 10 == 0) compare(plan::revolve(stages, k), "revolve", k);
  }
  compare(plan::sqrt_n(stages), "sqrt_n", 0);
  compare(plan::recompute_all(stages), "recompute_all", 0);
}

TEST(checkpoint_within, no_simple_plan_of_a_long_chain_is_faster) {
  random_chains chains{std::mt19937_64{14}};
  for (auto const count : {17, 48, 110}) {
    auto const unequal = chains(count, 2);
    plan::chain const equal(
        static_cast<std::size_t>(count),
        {.output = 10,
         .gradient = 10,
         .forward = 10,
         .scratch = 30,
         .variants = {{.saved = 170, .forward = 10, .replay = 7, .backward = 20}}});
    for (auto const& stages : {unequal, equal}) {
      auto const least = plan::least_bytes(stages), most = plan::keep_all(stages).peak;
      for (auto const share : {0, 20, 100})
        expect_no_simple_plan_is_faster(stages, least + (most - least) / 100 * share);
      expect_no_simple_plan_is_faster(stages, plan::sqrt_n(stages).peak);
    }
  }
}

TEST(checkpoint_within, more_bytes_are_never_slower) {
  random_chains chains{std::mt19937_64{15}};
  auto const stages = chains(40, 2);
  auto const whole = plan::trade(stages, 100);
  ASSERT_GT(whole.size(), 10U);
  for (std::size_t i = 1; i < whole.size(); ++i) {
    EXPECT_GT(whole[i].peak, whole[i - 1].peak);
    EXPECT_LT(whole[i].time, whole[i - 1].time);
    expect_proven(stages, whole[i]);
  }
  EXPECT_LE(whole.back().time, plan::keep_all(stages).time);
}

// The bounds are four times what two shared cores of an Intel Xeon (Sapphire Rapids) take.
TEST(checkpoint_within, plans_in_a_moment) {
#ifndef NDEBUG
  GTEST_SKIP() << "not optimized";
#endif
  random_chains chains{std::mt19937_64{16}};
  // A neighbour on a shared machine can slow a try or two.
  auto const takes_less_than = [](double limit, auto const& work) {
    for (int tries = 0; tries < 5; ++tries) {
      auto const start = std::chrono::steady_clock::now();
      work();
      std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
      if (took.count() < limit) return true;
    }
    return false;
  };
  auto const few = chains(48, 1), many = chains(1000, 1);
  EXPECT_TRUE(takes_less_than(0.2, [&] { EXPECT_FALSE(plan::trade(few, 500).empty()); }));
  auto const budget = plan::keep_all(many).peak / 4;
  EXPECT_TRUE(takes_less_than(20, [&] { EXPECT_LE(plan::within(many, budget).peak, budget); }));
}

}  // namespace
