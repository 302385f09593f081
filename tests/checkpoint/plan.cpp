// The checker against a simulation of single actions; the planners that count stages alone; misuse.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memfit/checkpoint/plan.hpp"
#include "reference_plan.hpp"

namespace {

using namespace test;
using plan::act;

bool accepted(plan::chain const& stages, std::vector<plan::action> const& actions,
              plan::schedule& found) {
  try {
    found = plan::checked(stages, actions);
    return true;
  } catch (memfit::argument_error const&) {
    return false;
  }
}

std::vector<plan::action> mutated(std::vector<plan::action> actions, random_chains& chains,
                                  std::int64_t stages) {
  auto const last = static_cast<std::int64_t>(actions.size()) - 1;
  auto const at = static_cast<std::size_t>(chains.draw(0, last));
  auto const other = static_cast<std::size_t>(chains.draw(0, last));
  switch (chains.draw(0, 6)) {
    case 0:
      actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(other), actions[at]);
      break;
    case 2:
      std::swap(actions[at], actions[other]);
      break;
    case 3:
      actions[at].index = chains.draw(-1, stages + 1);
      break;
    case 4:
      actions[at].variant = static_cast<int>(chains.draw(-1, 2));
      break;
    case 5:
      actions[at].output = !actions[at].output;
      break;
    default:
      actions[at].what = static_cast<act>(chains.draw(0, 8));
  }
  return actions;
}

TEST(checkpoint_check, accepts_what_can_be_carried_out_and_nothing_else) {
  random_chains chains{std::mt19937_64{1}};
  int refused = 0, still_right = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    auto const count = chains.draw(1, 7);
    auto const stages = chains(count, 2);
    auto const least = plan::least_bytes(stages);
    auto const planned = trial % 2 == 0 ? plan::within(stages, least, least, 1'000'000)
                                        : plan::within(stages, chains.draw(least, 2 * least));
    auto actions = planned.actions;
    for (auto times = chains.draw(1, 2); times > 0 && !actions.empty(); --times)
      actions = mutated(actions, chains, count);
    simulation by_hand(stages, INT64_MAX);
    for (auto const& a : actions) by_hand.apply(a);
    plan::schedule found;
    bool const taken = accepted(stages, actions, found);
    bool const has_backward = std::any_of(actions.begin(), actions.end(),
                                          [](auto const& a) { return a.what == act::backward; });
    if (!has_backward) continue;  // a forward alone has other rules
    ASSERT_EQ(taken, by_hand.finished());
    ++(taken ? still_right : refused);
    if (taken) {
      EXPECT_EQ(found.peak, by_hand.peak);
      EXPECT_EQ(found.time, by_hand.time);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(still_right, 100);
}

TEST(checkpoint_check, names_the_action_and_what_is_wrong) {
  plan::chain const stages(2);
  auto const said = [&](std::vector<plan::action> const& actions) -> std::string {
    try {
      plan::checked(stages, actions);
    } catch (memfit::argument_error const& e) {
      return e.what();
    }
    return "nothing";
  };
  EXPECT_EQ(said({{act::pass, 1}}),
            "memfit::checkpoint::checked: action 0 (pass of stage 1): its input is not alive");
  EXPECT_NE(said({{act::run, 0}, {act::run, 1}, {act::turn}, {act::backward, 0}})
                .find("action 3 (backward of stage 0): the next backward is that of stage 1"),
            std::string::npos);
  EXPECT_NE(said({{act::pass, 0}, {act::drop, 1}, {act::drop, 1}})
                .find("action 2 (drop of activation 1): it is not alive"),
            std::string::npos);
  EXPECT_NE(said({{act::run, 0, 3}}).find("variant 3"), std::string::npos);
  EXPECT_NE(said({{act::pass, 2}}).find("outside 0 to 1"), std::string::npos);
}

struct named_plan {
  std::string name;
  plan::schedule schedule;
};

std::vector<named_plan> simple_plans(plan::chain const& stages) {
  auto const n = static_cast<std::int64_t>(stages.size());
  std::vector<named_plan> all{{"keep_all", plan::keep_all(stages)},
                              {"sqrt_n", plan::sqrt_n(stages)},
                              {"recompute_all", plan::recompute_all(stages)}};
  for (auto const k : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, n, n + 5, INT64_MAX})
    if (k >= 1) {
      all.push_back({"every " + std::to_string(k), plan::every(stages, k)});
      all.push_back({"revolve " + std::to_string(k), plan::revolve(stages, k)});
    }
  std::vector<std::int64_t> odd;
  for (std::int64_t i = 1; i < n; i += 2) odd.push_back(i);
  all.push_back({"keep", plan::keep(stages, odd)});
  return all;
}

TEST(checkpoint_plan, every_planner_is_right_for_chains_of_all_kinds) {
  random_chains chains{std::mt19937_64{2}};
  for (std::int64_t count = 0; count < 30; ++count) {
    auto const stages = chains(count, 3);
    for (auto const& [name, s] : simple_plans(stages)) {
      SCOPED_TRACE(name + " of " + std::to_string(count));
      if (count == 0) {
        EXPECT_EQ(s.peak, 0);
        EXPECT_EQ(s.time, 0);
        continue;
      }
      simulation by_hand(stages);
      for (auto const& a : s.actions) by_hand.apply(a);
      EXPECT_TRUE(by_hand.finished());
      EXPECT_EQ(by_hand.peak, s.peak);
      EXPECT_EQ(by_hand.time, s.time);
      EXPECT_EQ(by_hand.forwards, s.forwards);
    }
  }
}

TEST(checkpoint_plan, forwards_are_those_of_the_pattern) {
  for (std::int64_t n = 1; n < 40; ++n) {
    plan::chain const stages(static_cast<std::size_t>(n));
    EXPECT_EQ(plan::keep_all(stages).forwards, n);
    EXPECT_EQ(plan::recompute_all(stages).forwards, n * (n + 1) / 2);
    for (std::int64_t k = 1; k <= n; ++k)
      EXPECT_EQ(plan::every(stages, k).forwards, n + (n - 1) / k * k) << n << " " << k;
    EXPECT_LE(plan::sqrt_n(stages).forwards, 2 * n);
    EXPECT_EQ(plan::forward_only(stages).forwards, n);
  }
}

TEST(checkpoint_plan, equal_stages_take_the_bytes_that_the_pattern_says) {
  plan::chain const stages(16, {.output = 1, .variants = {{.saved = 100}}});
  EXPECT_EQ(plan::keep_all(stages).peak, 16 * 100 + 16);
  EXPECT_EQ(plan::every(stages, 4).peak, 3 + 4 * 100 + 4);
  EXPECT_EQ(plan::every(stages, 1).peak, 15 + 100 + 1);
  EXPECT_EQ(plan::recompute_all(stages).peak, 1 + 100 + 1);
  EXPECT_EQ(plan::forward_only(stages).peak, 2);
}

// The stage's output that is kept as the next one's input is not made again.
TEST(checkpoint_plan, a_replay_makes_only_the_outputs_that_are_read) {
  plan::chain stages(6, {.output = 1, .forward = 3, .variants = {{.forward = 3, .replay = 2}}});
  auto const outputs = [&](plan::schedule const& s) {
    std::vector<bool> made(stages.size());
    for (auto const& a : s.actions)
      if (a.what == act::run) made[static_cast<std::size_t>(a.index)] = a.output;
    return made;
  };
  auto const by_ones = plan::every(stages, 1);
  EXPECT_EQ(outputs(by_ones), (std::vector<bool>{false, false, false, false, false, true}));
  EXPECT_EQ(by_ones.time, 5 * 3 + 5 * 2 + 3);
  auto const by_threes = plan::every(stages, 3);
  EXPECT_EQ(outputs(by_threes), (std::vector<bool>{true, true, false, true, true, true}));
  stages[2].reads_output = true;
  EXPECT_EQ(outputs(plan::every(stages, 3)),
            (std::vector<bool>{true, true, true, true, true, true}));
}

TEST(checkpoint_plan, a_budget_picks_the_variant_that_fits) {
  plan::chain const stages(
      4, {.output = 10,
          .forward = 100,
          .variants = {{.saved = 100, .forward = 100, .replay = 90, .backward = 200},
                       {.saved = 40, .forward = 100, .replay = 90, .backward = 205}}});
  auto const roomy = plan::within(stages, 1000);
  EXPECT_EQ(roomy.time, 4 * 300);
  auto const tight = plan::within(stages, 4 * 40 + 4 * 10);
  EXPECT_EQ(tight.time, 4 * 305);
  EXPECT_EQ(tight.forwards, 4);
}

template <class Work>
std::string refusal(Work const& work) {
  try {
    work();
  } catch (memfit::argument_error const& e) {
    return e.what();
  }
  return "";
}

TEST(checkpoint_plan, what_is_no_chain_and_no_count_is_refused) {
  plan::chain const right(3);
  std::vector<std::int64_t> const descending{2, 1}, outside{3}, zero{0};
  EXPECT_NE(refusal([&] { plan::every(right, 0); }), "");
  EXPECT_NE(refusal([&] { plan::every(right, INT64_MIN); }), "");
  EXPECT_NE(refusal([&] { plan::revolve(right, 0); }), "");
  EXPECT_NE(refusal([&] { plan::revolve(right, -7); }), "");
  EXPECT_NE(refusal([&] { plan::keep(right, descending); }), "");
  EXPECT_NE(refusal([&] { plan::keep(right, outside); }), "");
  EXPECT_NE(refusal([&] { plan::keep(right, zero); }), "");
  EXPECT_NE(refusal([&] { plan::within(right, -1); }), "");
  EXPECT_NE(refusal([&] { plan::within(right, 10, -1, 1); }), "");
  EXPECT_NE(refusal([&] { plan::within(right, 10, 10, 0); }), "");
  EXPECT_NE(refusal([&] { plan::trade(right, 0); }), "");

  std::vector<void (*)(plan::stage&)> const wrongs{
      [](plan::stage& s) { s.output = -1; },
      [](plan::stage& s) { s.gradient = INT64_MIN; },
      [](plan::stage& s) { s.forward = -1; },
      [](plan::stage& s) { s.scratch = -1; },
      [](plan::stage& s) { s.variants.clear(); },
      [](plan::stage& s) { s.variants[0].saved = -1; },
      [](plan::stage& s) { s.variants[0].forward = -1; },
      [](plan::stage& s) { s.variants[0].replay = -1; },
      [](plan::stage& s) { s.variants[0].backward = -1; },
      [](plan::stage& s) { s.variants[0].forward_scratch = -1; },
      [](plan::stage& s) { s.variants[0].backward_scratch = -1; },
      [](plan::stage& s) { s.output = s.variants[0].saved = INT64_MAX; },
      [](plan::stage& s) { s.forward = s.variants[0].forward = INT64_MAX; },
      [](plan::stage& s) { s.scratch = s.variants[0].saved = INT64_MAX; }};
  for (std::size_t i = 0; i < wrongs.size(); ++i) {
    auto stages = right;
    wrongs[i](stages[1]);
    for (auto const& said :
         {refusal([&] { plan::keep_all(stages); }), refusal([&] { plan::every(stages, 2); }),
          refusal([&] { plan::revolve(stages, 2); }), refusal([&] { plan::within(stages, 1000); }),
          refusal([&] { plan::least_bytes(stages); }), refusal([&] { plan::checked(stages, {}); })})
      EXPECT_NE(said.find("stage 1"), std::string::npos) << i << ": " << said;
  }
}

TEST(checkpoint_plan, a_hundred_thousand_stages_are_no_trouble_for_the_patterns) {
  plan::chain const stages(100'000, {.output = 1, .gradient = 1, .forward = 1});
  EXPECT_EQ(plan::sqrt_n(stages).forwards, 100'000 + (99'999 / 317) * 317);
  EXPECT_LT(plan::revolve(stages, 20).forwards, 700'000);
}

}  // namespace
