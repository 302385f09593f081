// What do a window's parts cost on the host? add/… adds gradients to sums and is measured against
// stream/add, which moves the same bytes: 4 + 8 per element of an fp32 sum. overwrite/… is the
// first addition of a window, against stream/copy. step/gate against step/plain is the price of a
// gate. Arguments of each benchmark: elements, threads.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include "cases.hpp"
#include "memfit/accumulator.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/rule/adaptive.hpp"
#include "memory.hpp"

namespace {

using memfit::ops;
using memfit::bench::array, memfit::bench::count;

constexpr std::int64_t most = std::int64_t{1} << 26;

struct arrays {
  array source{most * 4}, sums{most * 4}, kept{most * 4}, first{most * 4}, second{most * 4};
  arrays() {
    for (std::int64_t i = 0; i < most; ++i)
      source.as<float>()[i] = static_cast<float>(i % 1000) * 1e-3f;
  }
  static arrays& all() {
    static arrays a;
    return a;
  }
};

template <bool Add>
struct stream_body {
  float const* from;
  float* to;
  std::int64_t begin, end;
  template <class F>
  void operator()() const {
    for (auto i = begin; i < end; i += ops<F>::width) {
      F x = ops<F>::load(from + i);
      if constexpr (Add) x = x + ops<F>::load(to + i);
      ops<F>::store(to + i, x);
    }
  }
};

template <bool Add>
void stream(benchmark::State& state) {
  auto& a = arrays::all();
  auto const n = state.range(0);
  memfit::host const exec(static_cast<int>(state.range(1)));
  constexpr std::int64_t task = std::int64_t{1} << 16;
  for (auto _ : state)
    exec.for_each_task(n / task, [&](std::int64_t t) {
      exec.run(
          stream_body<Add>{a.source.as<float>(), a.sums.as<float>(), t * task, (t + 1) * task});
    });
  count(state, n, Add ? 12 : 8);
}

/// Bytes that an addition moves per element.
template <class Column, class Source>
constexpr double sum_bytes(bool overwrite) {
  double sums = sizeof(typename Column::code);
  if constexpr (!std::is_void_v<typename Column::kept>) sums += sizeof(typename Column::kept);
  return sizeof(Source) + (overwrite ? 1 : 2) * sums;
}

template <class Param, class Source>
void sum(benchmark::State& state, bool overwrite) {
  using column = memfit::column_for<Param>;
  auto& a = arrays::all();
  auto const n = state.range(0);
  memfit::host const exec(static_cast<int>(state.range(1)));
  exec.fill(a.sums.as<void>(), 0, n * 4);
  exec.fill(a.kept.as<void>(), 0, n * 4);
  float const weight = 3;
  std::uint32_t nonfinite = 0;
  memfit::sum_item const item{
      a.sums.as<void>(), a.kept.as<void>(), a.source.as<void>(), memfit::kind_of<Source>, n, 0};
  memfit::sum_call call{};
  call.weight = &weight;
  call.overwrite = overwrite;
  call.nonfinite = &nonfinite;
  for (auto _ : state) exec.sum<column>(item, call);
  count(state, n, sum_bytes<column, Source>(overwrite));
}

template <class Format>
void step(benchmark::State& state, bool gated) {
  auto& a = arrays::all();
  auto const n = state.range(0);
  memfit::host const exec(static_cast<int>(state.range(1)));
  memfit::adamw const rule{.lr = 1e-6, .weight_decay = 0.01};
  memfit::step_item<memfit::adamw> item{};
  item.visible = a.sums.as<void>();
  item.gradient = a.source.as<void>();
  item.count = n;
  item.moments[0] = {a.first.as<void>(), a.kept.as<float>()};
  item.moments[1] = {a.second.as<void>(), a.kept.as<float>() + most / 2};
  for (array const* all : {&a.sums, &a.first, &a.second, &a.kept})
    exec.fill(all->as<void>(), 0, n * 4);
  float const multiplier = 0.37f;
  std::uint32_t const skip = 0;
  memfit::gate g;
  if (gated) g = {.multiplier = &multiplier, .skip = &skip};
  std::int64_t t = 0;
  for (auto _ : state) {
    item.constants = rule.at(++t);
    exec.step<memfit::adamw, Format, memfit::column_for<memfit::fp32>>(item, g);
  }
  count(state, n, memfit::bench::step_bytes<Format, memfit::column_for<memfit::fp32>>());
}

template <class Function>
void add(std::string const& name, Function f) {
  auto* const b = benchmark::RegisterBenchmark(name.c_str(), f);
  b->UseRealTime()->Unit(benchmark::kMillisecond)->ArgNames({"n", "threads"});
  auto const all = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  for (std::int64_t n : {std::int64_t{1} << 20, most}) {
    b->Args({n, 1});
    if (all > 1) b->Args({n, all});
  }
}

template <class Param, class Source>
void add_sums(std::string const& name) {
  add("add/" + name, [](benchmark::State& s) { sum<Param, Source>(s, false); });
  add("overwrite/" + name, [](benchmark::State& s) { sum<Param, Source>(s, true); });
}

}  // namespace

int main(int argc, char** argv) {
  using memfit::bf16, memfit::fp16, memfit::fp32;
  add("stream/add", stream<true>);
  add("stream/copy", stream<false>);
  add_sums<fp32, float>("fp32/from_fp32");
  add_sums<fp32, bf16>("fp32/from_bf16");
  add_sums<fp32, fp16>("fp32/from_fp16");
  add_sums<memfit::stochastic<bf16>, bf16>("stochastic_bf16/from_bf16");
  add_sums<memfit::split<bf16>, bf16>("split_bf16/from_bf16");
  for (bool gated : {false, true}) {
    std::string const name = gated ? "step/gate/" : "step/plain/";
    add(name + "fp32", [gated](benchmark::State& s) { step<fp32>(s, gated); });
    add(name + "float8", [gated](benchmark::State& s) { step<memfit::float8>(s, gated); });
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
