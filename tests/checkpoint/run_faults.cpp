// Stages that throw, calls in the wrong order, plans that do not fit: nothing leaks, nothing is
// changed, and the runner works afterwards.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "memfit/checkpoint/run.hpp"
#include "memfit/exec/host.hpp"
#include "support/refusal.hpp"
#include "toy.hpp"

namespace {

using memfit::checkpointed, memfit::host, test::toy;
namespace plan = memfit::checkpoint;

/// A storage whose buffers the sanitizers watch one by one.
struct separate {
  std::set<void*> lent;
  void* take(std::int64_t bytes) {
    return *lent.insert(std::aligned_alloc(64, static_cast<std::size_t>(plan::rounded(bytes))))
                .first;
  }
  void give(void* data, std::int64_t) {
    lent.erase(data);
    std::free(data);
  }
};

void throw_somewhere(toy& model, plan::chain const& stages, plan::schedule const& schedule,
                     test::outcome const& expected, std::mt19937& dice) {
  separate own;
  plan::options const of_arena{.generator = model.generator()};
  plan::options const of_storage{.generator = model.generator(), .storage = own};
  for (auto const& options : {of_arena, of_storage}) {
    checkpointed run{host{1}, stages, schedule, options};
    auto const calls = schedule.forwards + std::ssize(stages);
    model.reset(static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(calls)));
    auto const fresh = model.generator();
    EXPECT_THROW(model.run(run), toy::thrown);
    EXPECT_TRUE(own.lent.empty());
    bool const in_forward = model.generator() == fresh;
    EXPECT_TRUE(in_forward || model.generator() == expected.generator);
    EXPECT_THROW(run.backward(model), memfit::argument_error);
    model.reset();
    EXPECT_TRUE(model.run(run) == expected);
  }
  EXPECT_TRUE(own.lent.empty());
}

TEST(checkpoint_run_faults, a_stage_that_throws_at_any_action_leaves_no_leak_and_a_usable_runner) {
  std::mt19937 dice(11);
  for (std::uint32_t chain = 0; chain < 20; ++chain) {
    auto const stages_wanted = 1 + static_cast<std::int64_t>(dice() % 12);
    toy model({stages_wanted, chain % 2 == 0, chain % 3 == 0}, chain);
    auto const expected = model.run_plain();
    auto const stages = plan::rounded(model.chain());
    auto const least = plan::least_bytes(stages);
    auto const most = plan::keep_all(stages).peak;
    for (std::int64_t budget = 0; budget < 20; ++budget) {
      auto const bytes = least + (most - least) * budget / 19;
      throw_somewhere(model, stages,
                      budget % 2 == 0 ? plan::within(stages, bytes)
                                      : plan::within(stages, bytes, bytes / 2, 64),
                      expected, dice);
    }
  }
}

TEST(checkpoint_run_faults, calls_in_the_wrong_order_are_refused) {
  toy model({3}, 1);
  auto const stages = model.chain();
  checkpointed run{host{1}, stages, plan::sqrt_n(stages)};
  test::expect_refusal<memfit::argument_error>([&] { run.backward(model); },
                                               {"checkpointed::backward", "forward"});
  test::expect_refusal<memfit::argument_error>([&] { run.output(); }, {"checkpointed::output"});
  test::expect_refusal<memfit::argument_error>([&] { run.output_gradient(); },
                                               {"checkpointed::output_gradient"});
  EXPECT_EQ(model.calls(), 0);
  model.run(run);
  test::expect_refusal<memfit::argument_error>([&] { run.backward(model); }, {"backward"});
}

TEST(checkpoint_run_faults, a_second_forward_starts_anew) {
  toy model({5, true}, 1);
  auto const expected = model.run_plain();
  auto const stages = model.chain();
  separate own;
  checkpointed run{host{1}, stages, plan::sqrt_n(stages), {.storage = own}};
  run.forward(model, model.input().data(), model.noise());
  model.reset();
  EXPECT_TRUE(model.run(run) == expected);
  EXPECT_TRUE(own.lent.empty());
}

TEST(checkpoint_run_faults, a_schedule_that_is_a_forward_alone_has_no_backward) {
  toy model({5}, 1);
  auto const expected = model.run_plain();
  auto const stages = plan::rounded(model.chain());
  auto const schedule = plan::forward_only(stages);
  checkpointed run{host{1}, stages, schedule};
  EXPECT_EQ(run.arena_bytes(), schedule.peak);
  for (int repeat = 0; repeat < 2; ++repeat) {
    model.reset();
    run.forward(model, model.input().data(), model.noise());
    EXPECT_EQ(0, std::memcmp(run.output(), expected.output.data(), expected.output.size() * 4));
  }
  test::expect_refusal<memfit::argument_error>([&] { run.backward(model); }, {"forward alone"});
}

TEST(checkpoint_run_faults, a_schedule_of_another_chain_is_refused_with_both_peaks) {
  toy model({4}, 3), other({4}, 4), shorter({3}, 4);
  auto const stages = model.chain();
  auto const schedule = plan::keep_all(other.chain());
  test::expect_refusal<memfit::argument_error>(
      [&] { checkpointed(host{1}, stages, schedule); },
      {"checkpointed", std::to_string(schedule.peak), std::to_string(plan::keep_all(stages).peak)});
  EXPECT_THROW(checkpointed(host{1}, shorter.chain(), schedule), memfit::argument_error);
  auto torn = plan::keep_all(stages);
  torn.actions.pop_back();
  EXPECT_THROW(checkpointed(host{1}, stages, torn), memfit::argument_error);
}

TEST(checkpoint_run_faults, an_arena_that_no_memory_holds_is_refused) {
  for (auto bytes : {std::int64_t{1} << 60, std::int64_t{1} << 62}) {
    plan::chain const stages{{.output = bytes, .variants = {{.saved = bytes / 4}}}};
    test::expect_refusal<memfit::memory_error>(
        [&] { checkpointed(host{1}, stages, plan::keep_all(stages)); },
        {"memfit::checkpointed", std::to_string(bytes + bytes / 4)});
  }
}

TEST(checkpoint_run_faults, a_carver_refuses_more_than_was_planned_and_says_what_was) {
  char storage[512];
  plan::carver c(storage, 300, "saved", 3);
  EXPECT_EQ(static_cast<void*>(c.take<float>(3)), storage);
  EXPECT_EQ(static_cast<void*>(c.take<double>(16)), storage + 128);
  EXPECT_EQ(c.take<float>(0), static_cast<void*>(storage + 256));
  test::expect_refusal<memfit::argument_error>(
      [&] { c.take<float>(12); }, {"carver::take", "stage 3", "saved", "12", "256", "300"});
  EXPECT_EQ(static_cast<void*>(c.take<float>(11)), storage + 256);
  for (std::int64_t count : {std::int64_t{-1}, INT64_MAX / 4, INT64_MAX / 8, INT64_MAX})
    test::expect_refusal<memfit::argument_error>([&] { c.take<double>(count); },
                                                 {"stage 3", std::to_string(count)});
  plan::carver nothing(nullptr, 0, "saved", 0);
  EXPECT_EQ(nothing.take<int>(0), nullptr);
  EXPECT_THROW(nothing.take<char>(1), memfit::argument_error);
}

TEST(checkpoint_run_faults, a_carver_without_storage_counts_what_one_with_storage_takes) {
  auto const layout = [](plan::carver& c) {
    return std::pair{c.take<float>(33), c.take<std::uint8_t>(5)};
  };
  plan::carver counter;
  EXPECT_EQ(layout(counter).second, nullptr);
  EXPECT_EQ(counter.bytes(), 3 * plan::alignment);
  std::vector<char> storage(static_cast<std::size_t>(counter.bytes()));
  plan::carver c(storage.data(), counter.bytes(), "scratch", 0);
  EXPECT_EQ(static_cast<void*>(layout(c).second), storage.data() + 2 * plan::alignment);
  EXPECT_EQ(c.bytes(), counter.bytes());
  EXPECT_THROW(counter.take<int>(-1), memfit::argument_error);
}

/// Takes more than its chain says, in a way that the sanitizers would not see in an arena.
struct greedy {
  int takes_too_much = 0;
  void forward(std::int64_t, void const*, void*, plan::context& c) {
    if (takes_too_much == 0) c.scratch.take<char>(1);
    if (takes_too_much == 1) c.saved.take<char>(1001);
  }
  void backward(std::int64_t, void const*, void const*, void*, void*, plan::context& c) {
    c.scratch.take<char>(2001);
  }
};

TEST(checkpoint_run_faults, a_stage_that_takes_more_than_its_chain_says_is_refused_by_name) {
  plan::chain const stages{
      {.output = 128, .variants = {{.saved = 1000, .backward_scratch = 2000}}}};
  checkpointed run{host{1}, stages, plan::keep_all(stages)};
  greedy model;
  test::expect_refusal([&] { run.forward(model, nullptr); }, {"stage 0", "scratch", "0 bytes"});
  model.takes_too_much = 1;
  test::expect_refusal([&] { run.forward(model, nullptr); }, {"stage 0", "saved", "1000"});
  model.takes_too_much = 2;
  run.forward(model, nullptr);
  test::expect_refusal([&] { run.backward(model); }, {"stage 0", "scratch", "2000"});
}

}  // namespace
