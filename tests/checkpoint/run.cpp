// Every schedule, every kind of storage: the bits of a run that keeps everything, in the bytes that
// were promised.
#include "memfit/checkpoint/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "memfit/exec/host.hpp"
#include "support/refusal.hpp"
#include "toy.hpp"

namespace {

using memfit::checkpointed, memfit::host, test::toy;
namespace plan = memfit::checkpoint;

std::vector<toy::shape> const shapes{{1},
                                     {2, true},
                                     {3, false, true},
                                     {5, true},
                                     {8, true, true},
                                     {12, false, true},
                                     {17, true, false},
                                     {26, false, false}};

/// Planners' schedules, and some of no planner.
std::vector<plan::schedule> schedules_of(plan::chain const& stages, std::uint32_t seed) {
  auto const n = static_cast<std::int64_t>(stages.size());
  std::vector<plan::schedule> all{plan::keep_all(stages), plan::sqrt_n(stages),
                                  plan::recompute_all(stages)};
  for (std::int64_t k : {1, 2, 3, 7}) all.push_back(plan::every(stages, k));
  for (std::int64_t slots : {1, 2, 3, 5}) all.push_back(plan::revolve(stages, slots));
  std::vector<std::int64_t> const kept{n / 3, n / 2};
  if (n > 3) all.push_back(plan::keep(stages, kept));
  for (auto const& fits : plan::trade(stages, 6)) all.push_back(fits);
  auto const least = plan::least_bytes(stages);
  for (std::int64_t share : {1, 3}) {
    auto const budget = least + (all.front().peak - least) * share / 4;
    all.push_back(plan::within(stages, budget));
    all.push_back(plan::within(stages, budget, budget, 40));
  }
  std::mt19937 dice(seed);
  for (int i = 0; i < 10; ++i) all.push_back(test::random_schedule(stages, i % 2 != 0, dice));
  return all;
}

plan::options with_generator_of(toy& model) {
  return {.generator = model.generator()};
}

TEST(checkpoint_run, every_schedule_gives_the_bits_of_a_plain_run_in_the_promised_bytes) {
  std::uint32_t seed = 1;
  for (auto const& shape : shapes) {
    toy model(shape, ++seed);
    auto const expected = model.run_plain();
    auto const stages = plan::rounded(model.chain());
    for (auto const& schedule : schedules_of(stages, seed)) {
      checkpointed run{host{1}, stages, schedule, with_generator_of(model)};
      EXPECT_EQ(run.arena_bytes(), schedule.peak);
      EXPECT_EQ(run.second_bytes(), schedule.second_peak);
      for (int repeat = 0; repeat < 2; ++repeat) {
        model.reset();
        ASSERT_TRUE(model.run(run) == expected) << shape.stages << " stages";
        EXPECT_EQ(model.calls(), schedule.forwards + shape.stages);
        EXPECT_EQ(model.replays(), schedule.forwards - shape.stages);
      }
    }
  }
}

TEST(checkpoint_run, bytes_that_are_not_rounded_take_less_than_a_line_more_per_buffer) {
  toy model({9, true, true}, 5);
  auto const expected = model.run_plain();
  auto const stages = model.chain();
  for (auto const& schedule : schedules_of(stages, 3)) {
    checkpointed run{host{1}, stages, schedule, with_generator_of(model)};
    model.reset();
    EXPECT_TRUE(model.run(run) == expected);
    EXPECT_GE(run.arena_bytes(), schedule.peak);
    EXPECT_LT(run.arena_bytes(), schedule.peak + plan::alignment * 2 * 9);
  }
}

/// Counts what it lends, and overwrites what it gets back.
struct pool {
  std::map<void*, std::int64_t> lent;
  std::int64_t bytes = 0, peak = 0, fail_after = -1;

  void* take(std::int64_t size) {
    if (fail_after-- == 0) return nullptr;
    void* const data = std::aligned_alloc(64, static_cast<std::size_t>(plan::rounded(size)));
    lent[data] = size;
    peak = std::max(peak, bytes += size);
    return data;
  }
  void give(void* data, std::int64_t size) {
    auto const found = lent.find(data);
    if (found == lent.end() || found->second != size) std::abort();
    lent.erase(found);
    bytes -= size;
    std::memset(data, 0xff, static_cast<std::size_t>(size));
    std::free(data);
  }
};

TEST(checkpoint_run, a_users_storage_is_asked_for_no_more_than_the_peak_and_gets_all_back) {
  std::uint32_t seed = 40;
  for (auto const& shape : shapes) {
    toy model(shape, ++seed);
    auto const expected = model.run_plain();
    auto const stages = plan::rounded(model.chain());
    for (auto const& schedule : schedules_of(stages, seed)) {
      pool own;
      checkpointed run{host{1}, stages, schedule, {.generator = model.generator(), .storage = own}};
      EXPECT_EQ(run.arena_bytes(), 0);
      model.reset();
      ASSERT_TRUE(model.run(run) == expected) << shape.stages << " stages";
      EXPECT_EQ(own.peak, schedule.peak);
      EXPECT_TRUE(own.lent.empty());
    }
  }
}

TEST(checkpoint_run, a_storage_without_memory_is_reported_and_gets_all_back) {
  toy model({6, true}, 8);
  auto const expected = model.run_plain();
  auto const stages = model.chain();
  for (std::int64_t fail_after = 0; fail_after < 12; ++fail_after) {
    pool own;
    checkpointed run{host{1}, stages, plan::keep_all(stages), {.storage = own}};
    own.fail_after = fail_after;
    model.reset();
    test::expect_refusal<memfit::memory_error>([&] { model.run(run); },
                                               {"checkpointed", "bytes",
                                                fail_after == 0  ? "gradients"
                                                : fail_after < 2 ? "stage 0"
                                                                 : ""});
    EXPECT_TRUE(own.lent.empty());
    own.fail_after = -1;
    model.reset();
    EXPECT_TRUE(model.run(run) == expected);
  }
}

TEST(checkpoint_run, a_storage_gets_all_back_from_a_runner_that_is_destroyed_or_moved_over) {
  toy model({6, true}, 8);
  auto const stages = model.chain();
  pool own;
  auto const make = [&] {
    return checkpointed{host{1}, stages, plan::keep_all(stages), {.storage = own}};
  };
  {
    auto run = make();
    run.forward(model, model.input().data());
    auto moved = std::move(run);
    EXPECT_FALSE(own.lent.empty());
    EXPECT_NE(moved.output(), nullptr);
    auto another = make();
    model.reset();
    another.forward(model, model.input().data());
    moved = std::move(another);
    EXPECT_NE(moved.output_gradient(), nullptr);
  }
  EXPECT_TRUE(own.lent.empty());
}

/// Activations in a map, as a file would hold them.
struct shelf {
  std::map<std::int64_t, std::vector<char>> kept;
  std::int64_t stores = 0, loads = 0;

  void store(std::int64_t activation, void const* from, std::int64_t bytes) {
    ++stores;
    auto const* const first = static_cast<char const*>(from);
    kept[activation].assign(first, first + bytes);
  }
  void load(std::int64_t activation, void* to, std::int64_t bytes) {
    ++loads;
    auto const& data = kept.at(activation);
    ASSERT_EQ(std::ssize(data), bytes);
    std::copy(data.begin(), data.end(), static_cast<char*>(to));
  }
};

TEST(checkpoint_run, a_users_second_place_holds_what_the_schedule_stores) {
  toy model({20, false, true}, 77);
  auto const expected = model.run_plain();
  auto const stages = model.chain();
  std::mt19937 dice(3);
  std::int64_t loads = 0;
  for (int i = 0; i < 20; ++i) {
    shelf place;
    auto const schedule = test::random_schedule(stages, true, dice);
    checkpointed run{
        host{1}, stages, schedule, {.generator = model.generator(), .second_place = place}};
    EXPECT_EQ(run.second_bytes(), 0);
    model.reset();
    ASSERT_TRUE(model.run(run) == expected);
    EXPECT_GE(place.loads, place.stores);
    loads += place.loads;
  }
  EXPECT_GT(loads, 20);
}

TEST(checkpoint_run, no_noise_but_that_of_the_same_seed_and_step_repeats) {
  toy model({4}, 2);
  auto const stages = model.chain();
  checkpointed run{host{1}, stages, plan::keep_all(stages)};
  std::vector<std::vector<float>> outputs;
  for (plan::noise_seed seed : {plan::noise_seed{1, 1}, {1, 2}, {2, 1}, {1, 1}}) {
    model.reset();
    run.forward(model, model.input().data(), seed);
    auto const* const y = static_cast<float const*>(run.output());
    outputs.emplace_back(y, y + stages.back().output / 4);
  }
  EXPECT_NE(outputs[0], outputs[1]);
  EXPECT_NE(outputs[0], outputs[2]);
  EXPECT_NE(outputs[1], outputs[2]);
  EXPECT_EQ(outputs[0], outputs[3]);
}

TEST(checkpoint_run, stages_have_keys_of_their_own) {
  plan::noise_seed const seed{.seed = 5, .step = 2};
  for (std::int64_t a = 0; a < 8; ++a) {
    for (std::int64_t b = 0; b < 8; ++b) {
      auto const key = plan::stage_noise(seed, a), other = plan::stage_noise(seed, b);
      EXPECT_EQ(key.first == other.first && key.second == other.second, a == b);
      auto const tensor = memfit::make_noise_key(seed.seed, seed.step, b);
      EXPECT_FALSE(key.first == tensor.first && key.second == tensor.second);
    }
  }
}

}  // namespace
