// How long planning takes, and what carrying out a schedule costs beside the stages themselves.
#include <cstdint>
#include <random>
#include <string>

#include <benchmark/benchmark.h>

#include "memfit/checkpoint/plan.hpp"
#include "memfit/checkpoint/run.hpp"
#include "memfit/exec/host.hpp"

namespace {

namespace ck = memfit::checkpoint;

// No two stages alike; bytes have no common measure. Some stages have a variant that saves less.
ck::chain unequal_stages(std::int64_t count) {
  std::mt19937 random{7};
  auto const draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>{least, most}(random);
  };
  ck::chain stages;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t const forward = draw(1000, 9000), saved = draw(4'000'000, 20'000'000);
    ck::stage s{.output = draw(500'000, 3'000'000), .forward = forward, .scratch = saved / 3};
    s.variants = {{saved, forward, forward * 2 / 3, 2 * forward, 0, saved / 4}};
    if (i % 2 == 0)
      s.variants.push_back(
          {saved / 2, forward, forward * 2 / 3, 2 * forward + forward / 5, saved / 2, saved / 2});
    stages.push_back(s);
  }
  return stages;
}

void plan_within(benchmark::State& state) {
  auto const stages = unequal_stages(state.range(0));
  auto const budget = ck::keep_all(stages).peak / state.range(1);
  for (auto _ : state) benchmark::DoNotOptimize(ck::within(stages, budget));
  auto const plan = ck::within(stages, budget);
  state.counters["time/keep_all"] =
      static_cast<double>(plan.time) / static_cast<double>(ck::keep_all(stages).time);
}
BENCHMARK(plan_within)
    ->ArgNames({"stages", "all_over"})
    ->ArgsProduct({{48, 200, 1000}, {2, 4, 10}})
    ->Unit(benchmark::kMillisecond);

void plan_trade(benchmark::State& state) {
  auto const stages = unequal_stages(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(ck::trade(stages, state.range(1)));
}
BENCHMARK(plan_trade)
    ->ArgNames({"stages", "budgets"})
    ->Args({48, 500})
    ->Unit(benchmark::kMillisecond);

struct idle_stages {
  static void forward(std::int64_t, void const*, void* out, ck::context& c) {
    benchmark::DoNotOptimize(out);
    if (c.saves()) benchmark::DoNotOptimize(c.saved.take<char>(1));
  }
  static void backward(std::int64_t, void const*, void const*, void*, void* gradient,
                       ck::context& c) {
    benchmark::DoNotOptimize(gradient);
    benchmark::DoNotOptimize(c.saved.take<char>(1));
  }
};

void run_idle_stages(benchmark::State& state) {
  ck::chain const stages(48, {.output = 128, .gradient = 128, .variants = {{.saved = 1024}}});
  auto const plan = ck::every(stages, state.range(0));
  memfit::checkpointed run{memfit::host{1}, stages, plan};
  idle_stages model;
  char input = 0;
  for (auto _ : state) {
    run.forward(model, &input);
    run.backward(model);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(plan.actions.size()));
}
BENCHMARK(run_idle_stages)->ArgName("every")->Arg(48)->Arg(7)->Arg(1);

}  // namespace

BENCHMARK_MAIN();
