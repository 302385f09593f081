// The estimate: bytes by category of hand-made models against sums done by hand and against what
// managers hold, and what it refuses.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memfit/checkpoint/plan.hpp"
#include "memfit/cost.hpp"
#include "memfit/fit/estimate.hpp"
#include "memfit/optimizer.hpp"
#include "support/plain_executor.hpp"

namespace {

using namespace memfit;

/// Stages of so many bytes each: output 100, gradient 10, saved 1000.
fit::model stages_of(std::vector<fit::stage> stages) {
  auto const count = stages.size();
  return {
      .name = "by hand", .stages = std::move(stages), .chain = [count](auto const&, auto const&) {
        checkpoint::stage s{.output = 100, .gradient = 10};
        s.variants = {{.saved = 1000}};
        return checkpoint::chain(count, s);
      }};
}

fit::model one_tensor(std::int64_t count) {
  return stages_of({{"all", {{"w", count}}}});
}

/// A head tied to its embedding around two blocks.
fit::model tied() {
  return stages_of({{"embedding", {{"table", 100}, {"positions", 7}}},
                    {"block 0", {{"0", 29}, {"0 bias", 1}}},
                    {"block 1", {{"1", 31}}},
                    {"head", {{"norm", 5}, {"table", 100}}}});
}

fit::training adamw_in_fp32() {
  return {.column = cost_of_column<fp32>(), .states = cost_of<adamw, fp32>()};
}

TEST(fit_estimate, a_billion_fp32_parameters_with_adam_take_16_gb) {
  constexpr std::int64_t count = 1'000'000'000;
  auto const b = fit::estimate(one_tensor(count),
                               {.column = cost_of_column<fp32>(), .states = cost_of<adam, fp32>()});
  EXPECT_EQ(b.parameters + b.kept + b.gradients + b.sums + b.states(), 16 * count);
  EXPECT_EQ(b.parameters, 4 * count);
  EXPECT_EQ(b.gradients, 4 * count);
  EXPECT_EQ(b.moments, (std::vector{4 * count, 4 * count}));
}

TEST(fit_estimate, of_many_tensors_is_what_the_optimizer_holds) {
  using format = per_slot<bf16, root8>;
  std::vector<bf16> data(10'000);
  std::vector<tensor_ref<bf16>> tensors;
  std::vector<fit::parameter> parameters;
  for (std::int64_t i = 0; i < 600; ++i)
    parameters.push_back({"t" + std::to_string(i), i == 0 ? 4096 : i % 10});
  std::int64_t first = 0;
  for (auto const& p : parameters) {
    tensors.push_back({data.data() + first, p.count, p.name});
    first += p.count;
  }
  optimizer<adamw, format, corrected<bf16>> const opt(test::plain_executor(), {}, tensors);
  fit::training t{.column = cost_of_column<corrected<bf16>>(), .states = cost_of<adamw, format>()};
  auto const b = fit::estimate(stages_of({{"all", parameters}}), t);
  auto const d = opt.describe();
  EXPECT_EQ(b.parameters, d.parameter_bytes);
  EXPECT_EQ(b.gradients, d.parameter_bytes);
  EXPECT_EQ(b.kept, d.kept_bytes);
  EXPECT_EQ(b.states(), d.state_bytes);
  EXPECT_EQ(b.moments.size(), 2u);
  EXPECT_EQ(b.workspace, d.shared_bytes);
  EXPECT_EQ(t.states.min_quantized, optimizer_options().min_quantized);
}

/// Each tensor's begin at a multiple of 128 bytes.
TEST(fit_estimate, sums_are_there_where_a_step_has_several_passes) {
  auto t = adamw_in_fp32();
  t.batch = 3;
  for (auto const& [how, bytes] : {std::pair{fit::accumulation::fp32, 128 * (4 + 5)},
                                   {fit::accumulation::bf16, 128 * (2 + 5)}}) {
    t.accumulation = how;
    for (std::int64_t const micro_batch : {1, 2, 3}) {
      t.micro_batch = micro_batch;
      auto const b = fit::estimate(tied(), t);
      EXPECT_EQ(b.sums, micro_batch < 3 ? bytes : 0);
      EXPECT_EQ(b.gradients, 4 * 173);
    }
  }
}

TEST(fit_estimate, a_released_gradient_lives_as_long_as_stages_name_its_tensor) {
  auto t = adamw_in_fp32();
  EXPECT_EQ(fit::estimate(tied(), t).gradients, 4 * 173);
  t.gradient_release = true;
  EXPECT_EQ(fit::estimate(tied(), t).gradients, 4 * (100 + 31));
  auto untied = tied();
  untied.stages.back().parameters.back().name = "another table";
  EXPECT_EQ(fit::estimate(untied, t).gradients, 4 * 107);
  t.batch = 8;
  t.accumulation = fit::accumulation::folded;
  auto const folded = fit::estimate(tied(), t);
  EXPECT_EQ(folded.gradients, 4 * (100 + 31));
  EXPECT_EQ(folded.sums, 0);
}

TEST(fit_estimate, tensors_without_names_are_different_ones) {
  auto const m = stages_of({{"a", {{"", 3}}}, {"b", {{"", 5}}}});
  EXPECT_EQ(fit::estimate(m, adamw_in_fp32()).parameters, 4 * 8);
}

/// 1,003 elements over 4 ranks: 251 on the largest.
TEST(fit_estimate, data_parallel_ranks_divide_what_their_zero_stage_says) {
  fit::training t{.batch = 2,
                  .column = cost_of_column<master<bf16>>(),
                  .states = cost_of<adamw, fp32>(),
                  .accumulation = fit::accumulation::fp32};
  t.ranks.data = 4;
  struct {
    int stage;
    std::int64_t states, gradients, sums, parameters, communication;
  } const rows[] = {{0, 1003, 1003, 1024, 1003, 0},
                    {1, 251, 1003, 1024, 1003, 0},
                    {2, 251, 251, 256, 1003, 2 * 1003},
                    {3, 251, 251, 256, 251, 2 * 2 * 1003}};
  for (auto const& row : rows) {
    t.ranks.zero_stage = row.stage;
    auto const b = fit::estimate(one_tensor(1003), t);
    EXPECT_EQ(b.kept, 4 * row.states) << row.stage;
    EXPECT_EQ(b.states(), 8 * row.states) << row.stage;
    EXPECT_EQ(b.gradients, 2 * row.gradients) << row.stage;
    EXPECT_EQ(b.sums, 4 * row.sums) << row.stage;
    EXPECT_EQ(b.parameters, 2 * row.parameters) << row.stage;
    EXPECT_EQ(b.communication, row.communication) << row.stage;
  }
}

TEST(fit_estimate, tensor_parallel_ranks_divide_tensors_that_say_so) {
  auto t = adamw_in_fp32();
  t.ranks.tensor = 2;
  auto const m = stages_of({{"a", {{"matrix", 101}, {"norm", 10, false}}}});
  EXPECT_EQ(fit::estimate(m, t).parameters, 4 * (51 + 10));
  EXPECT_EQ(fit::estimate(m, t).states(), 8 * (51 + 10));
}

/// Of four stages the second rank has the last two, as the embedding is large.
TEST(fit_estimate, pipeline_ranks_hold_their_stages_and_the_passes_under_way) {
  auto t = adamw_in_fp32();
  t.batch = 8;
  t.accumulation = fit::accumulation::bf16;
  t.ranks.pipeline = 2;
  auto const m =
      stages_of({{"a", {{"a", 10}}}, {"b", {{"b", 10}}}, {"c", {{"c", 10}}}, {"d", {{"d", 9}}}});
  auto const run = m.chain({}, {});
  auto const two = checkpoint::keep_all({run[0], run[1]}).peak;
  std::int64_t const held = 2 * (1000 + 100);
  auto const first = fit::estimate(m, t);
  EXPECT_EQ(first.parameters, 4 * 20);
  EXPECT_EQ(first.activations, two + held);
  EXPECT_EQ(first.communication, 110);
  t.ranks.pipeline = 4;
  t.micro_batch = 4;
  auto const fewer_passes = fit::estimate(m, t);
  EXPECT_EQ(fewer_passes.parameters, 4 * 10);
  auto const one = checkpoint::keep_all({run[0]}).peak;
  EXPECT_EQ(fewer_passes.activations, one + 1100 + 2 * 100 + 10);  // of the second rank
  EXPECT_EQ(fewer_passes.communication, 2 * 110);
}

TEST(fit_estimate, a_tensor_that_two_pipeline_ranks_name_is_on_both) {
  auto t = adamw_in_fp32();
  t.ranks.pipeline = 2;
  EXPECT_EQ(fit::estimate(tied(), t).parameters, 4 * (31 + 105));
  t.ranks.pipeline = 4;
  EXPECT_EQ(fit::estimate(tied(), t).parameters, 4 * 105);  // of the last, which has an input
}

TEST(fit_estimate, offloaded_states_are_on_the_host_but_for_a_stage) {
  fit::training t{.column = cost_of_column<split<bf16>>(), .states = cost_of<adamw, fp32>()};
  auto const here = fit::estimate(tied(), t);
  t.offloads_states = true;
  auto const away = fit::estimate(tied(), t);
  EXPECT_EQ(away.states(), 0);
  EXPECT_EQ(away.moments.size(), 2u);
  EXPECT_EQ(away.kept, 0);
  EXPECT_EQ(away.host, here.states() + here.kept);
  EXPECT_EQ(away.communication, (8 + 2) * 107);
  EXPECT_EQ(away.gradients, here.gradients);
}

TEST(fit_estimate, activations_are_those_of_the_schedule) {
  auto t = adamw_in_fp32();
  auto const chain = tied().chain({}, {});
  EXPECT_EQ(fit::estimate(tied(), t).activations, checkpoint::keep_all(chain).peak);
  t.schedule = [](checkpoint::chain const& c) {
    return checkpoint::within(c, checkpoint::least_bytes(c));
  };
  EXPECT_EQ(fit::estimate(tied(), t).activations, checkpoint::least_bytes(chain));
  t.schedule = [](auto const&) {
    return checkpoint::schedule{.actions = {}, .peak = 123, .second_peak = 45};
  };
  auto const b = fit::estimate(tied(), t);
  EXPECT_EQ(b.activations, 123);
  EXPECT_EQ(b.host, 45);
}

/// Of a pass under way a checkpoint and what the last two stages saved and made; the stage before
/// the checkpoint was passed.
TEST(fit_estimate, a_pass_under_way_holds_what_its_schedule_keeps) {
  std::vector<fit::stage> stages;
  for (char name = 'a'; name < 'i'; ++name)
    stages.push_back({std::string(1, name), {{std::string(1, name), 10}}});
  auto const m = stages_of(stages);
  auto t = adamw_in_fp32();
  t.batch = 2;
  t.accumulation = fit::accumulation::fp32;
  t.ranks.pipeline = 2;
  t.schedule = [](checkpoint::chain const& c) { return checkpoint::every(c, 2); };
  auto const chain = m.chain({}, {});
  auto const first = checkpoint::every({chain.begin(), chain.begin() + 4}, 2).peak;
  EXPECT_EQ(fit::estimate(m, t).activations, first + 100 + 2 * (1000 + 100));
}

TEST(fit_estimate, the_chain_is_told_of_the_pass_and_of_the_device) {
  fit::pass seen_pass;
  fit::rates seen_rates;
  auto m = one_tensor(1);
  m.chain = [&](fit::pass const& p, fit::rates const& r) {
    seen_pass = p;
    seen_rates = r;
    return checkpoint::chain(1);
  };
  m.workspace = [](fit::pass const& p) { return 1000 * p.batch; };
  auto t = adamw_in_fp32();
  t.batch = 6;
  t.micro_batch = 3;
  t.seq = 5;
  t.column = cost_of_column<bf16>();
  t.ranks.tensor = 2;
  t.accumulation = fit::accumulation::fp32;
  auto const workspace = fit::estimate(m, t, {.flops = 7}).workspace;
  EXPECT_GE(workspace, 3000);
  EXPECT_LT(workspace, 3000 + detail::shared_bytes(1) + 100);
  EXPECT_EQ(seen_pass.batch, 3);
  EXPECT_EQ(seen_pass.seq, 5);
  EXPECT_EQ(seen_pass.element_bytes, 2);
  EXPECT_EQ(seen_pass.tensor_ranks, 2);
  EXPECT_EQ(seen_rates.flops, 7);
}

using change = std::function<void(fit::model&, fit::training&)>;

TEST(fit_estimate, refuses_what_does_not_fit_together_and_names_it) {
  struct {
    std::string_view said;
    change make;
  } const rows[] = {
      {"batch is 0", [](auto&, auto& t) { t.batch = 0; }},
      {"micro_batch is 2, must be at least 1 and at most 1, the batch",
       [](auto&, auto& t) { t.micro_batch = 2; }},
      {"seq is 0", [](auto&, auto& t) { t.seq = 0; }},
      {"micro_batch is 1 of a batch of 2, so accumulation must not be none",
       [](auto&, auto& t) { t.batch = 2; }},
      {"needs gradient_release",
       [](auto&, auto& t) { t.accumulation = fit::accumulation::folded; }},
      {"which rule 'momentum' does not do",
       [](auto&, auto& t) {
         t.accumulation = fit::accumulation::folded;
         t.gradient_release = true;
         t.states = cost_of<momentum, fp32>();
       }},
      {"ranks.zero_stage is 4", [](auto&, auto& t) { t.ranks.zero_stage = 4; }},
      {"ranks.zero_stage is -1", [](auto&, auto& t) { t.ranks.zero_stage = -1; }},
      {"ranks.data is 0", [](auto&, auto& t) { t.ranks.data = 0; }},
      {"ranks.tensor is -1", [](auto&, auto& t) { t.ranks.tensor = -1; }},
      {"ranks.pipeline is 5, must be at least 1 and at most 4, the stages of the model",
       [](auto&, auto& t) { t.ranks.pipeline = 5; }},
      {"column 'fp32' is 0", [](auto&, auto& t) { t.column.element_bytes = 0; }},
      {"kept beside an element of column 'fp32' is -1",
       [](auto&, auto& t) { t.column.kept_bytes = -1; }},
      {"moment 'exp_avg' of rule 'adamw'",
       [](auto&, auto& t) { t.states.moments[0].scale_bytes = nullptr; }},
      {"'by hand' has no stages", [](auto& m, auto&) { m.stages.clear(); }},
      {"'by hand' has no chain", [](auto& m, auto&) { m.chain = nullptr; }},
      {"chain of model 'by hand' has 4 stages for 3", [](auto& m, auto&) { m.stages.pop_back(); }},
      {"elements of 'norm' in stage 'head' is -1",
       [](auto& m, auto&) { m.stages[3].parameters[0].count = -1; }},
      {"elements of '1' in stage 'block 1' is 9223372036854775807",
       [](auto& m, auto&) { m.stages[2].parameters[0].count = INT64_MAX; }},
      {"101 elements of 'table' in stage 'head' and 100 in a stage before",
       [](auto& m, auto&) { m.stages[3].parameters[1].count = 101; }},
      {"do not fit into 64 bits",
       [](auto& m, auto& t) {
         t.batch = 8;
         t.accumulation = fit::accumulation::fp32;
         t.ranks.pipeline = 4;
         m.chain = [](auto const&, auto const&) {
           checkpoint::stage s;
           s.variants = {{.saved = std::int64_t{3} << 60}};
           return checkpoint::chain(4, s);
         };
       }},
  };
  for (auto const& row : rows) {
    auto m = tied();
    auto t = adamw_in_fp32();
    row.make(m, t);
    try {
      fit::estimate(m, t);
      ADD_FAILURE() << row.said;
    } catch (argument_error const& e) {
      EXPECT_NE(std::string_view(e.what()).find(row.said), std::string_view::npos)
          << e.what() << "\nbut not: " << row.said;
    }
  }
}

}  // namespace
