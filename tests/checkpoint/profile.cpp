// A model that is measured gives the chain that was written by hand, with times.
#include "memfit/checkpoint/profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "memfit/exec/host.hpp"
#include "support/refusal.hpp"
#include "toy.hpp"

namespace {

using memfit::host, test::toy;
namespace plan = memfit::checkpoint;

/// What a user knows before measuring.
plan::chain outlines(plan::chain const& stages) {
  plan::chain known;
  for (auto const& s : stages)
    known.push_back({.output = s.output,
                     .gradient = s.gradient,
                     .reads_output = s.reads_output,
                     .variants = std::vector<plan::variant>(s.variants.size())});
  return known;
}

plan::chain without_times(plan::chain stages) {
  for (auto& s : stages) {
    s.forward = 0;
    for (auto& v : s.variants) v.forward = v.replay = v.backward = 0;
  }
  return stages;
}

TEST(checkpoint_profile, bytes_are_what_the_stages_take) {
  for (bool own_generator : {false, true}) {
    toy model({9, true, own_generator}, 6);
    model.everything_is_a_replay();
    auto const stages = model.chain();
    auto const found = plan::profile(host{1}, model, outlines(stages), model.input().data());
    EXPECT_EQ(without_times(found), without_times(stages));
    for (auto const& s : found) {
      EXPECT_GT(s.forward, 0);
      for (auto const& v : s.variants) EXPECT_GT(std::min({v.forward, v.replay, v.backward}), 0);
    }
  }
}

TEST(checkpoint_profile, a_measured_model_trains_within_the_bytes_that_were_planned) {
  toy model({9}, 6);
  auto const expected = model.run_plain();
  model.everything_is_a_replay();
  std::vector<float> input_gradient(model.input().size());
  auto const stages =
      plan::rounded(plan::profile(host{1}, model, outlines(model.chain()), model.input().data(),
                                  {.input_gradient = input_gradient.data()}));
  auto const schedule = plan::within(stages, plan::least_bytes(stages));
  memfit::checkpointed run{host{1}, stages, schedule};
  EXPECT_EQ(run.arena_bytes(), schedule.peak);
  model.reset();
  EXPECT_TRUE(model.run(run) == expected);
}

/// Takes a known time for everything.
struct slow {
  static void sleep(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }
  void forward(std::int64_t, void const*, void* out, plan::context& c) const {
    sleep((c.saves() ? 4 : 2) + (out != nullptr ? 4 : 0));
  }
  void backward(std::int64_t, void const*, void const*, void*, void*, plan::context&) const {
    sleep(12);
  }
};

TEST(checkpoint_profile, times_are_those_of_the_calls) {
  auto const found =
      plan::profile(host{1}, slow{}, {{.output = 4}}, nullptr, {.repetitions = 3})[0];
  constexpr std::int64_t millisecond = 1000000;
  auto const expect_about = [](std::int64_t time, std::int64_t milliseconds) {
    EXPECT_GE(time, milliseconds * millisecond);
    EXPECT_LT(time, (milliseconds + 40) * millisecond);
  };
  expect_about(found.forward, 6);
  expect_about(found.variants[0].forward, 8);
  expect_about(found.variants[0].replay, 4);
  expect_about(found.variants[0].backward, 12);
}

struct greedy {
  void forward(std::int64_t, void const*, void*, plan::context& c) const {
    c.saved.take<double>(INT64_MAX / 64);
  }
  void backward(std::int64_t, void const*, void const*, void*, void*, plan::context&) const {}
};

TEST(checkpoint_profile, what_cannot_be_measured_is_refused) {
  toy model({2}, 1);
  auto const* const input = model.input().data();
  test::expect_refusal<memfit::argument_error>(
      [&] { plan::profile(host{1}, model, model.chain(), input, {.repetitions = 0}); },
      {"profile", "repetitions", "0"});
  EXPECT_THROW(plan::profile(host{1}, model, {{.output = -4}}, input), memfit::argument_error);
  // A pass saves nothing, however much there is.
  test::expect_refusal<memfit::argument_error>(
      [&] { plan::profile(host{1}, greedy{}, {{.output = 4}}, nullptr); }, {"stage 0", "saved"});
}

}  // namespace
