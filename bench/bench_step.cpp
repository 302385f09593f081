// How fast are the host step and the quantizers, against loops that move the same bytes?
// stream/16B reads g, p, s1, s2 and writes p, s1, s2 with almost no arithmetic: the limit of a
// step; stream/12B with gradients and parameters of 16 bits, and a third byte of these, that of a
// step of corrected<bf16>. stream/quantize reads 4 bytes and writes 1, stream/dequantize the other
// way round. Arguments of each benchmark: elements, threads.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include "cases.hpp"
#include "memfit/memfit.hpp"
#include "memory.hpp"

namespace {

using memfit::ops;
using memfit::bench::array, memfit::bench::count;

constexpr std::int64_t most = std::int64_t{1} << 27;

/// Everything that any benchmark touches, allocated once.
struct arrays {
  array parameter{most * 4}, gradient{most * 4}, kept{most * 4};
  array first{most * 4}, second{most * 4};
  array first_scales{most / 8}, second_scales{most / 8};
  array narrow_gradient{most * 2};

  arrays() {
    std::uint32_t seed = 1;
    for (std::int64_t i = 0; i < most; ++i) {
      seed = seed * 1664525u + 1013904223u;
      float const u = static_cast<float>(seed >> 8) / 16777216.0f - 0.5f;
      gradient.as<float>()[i] = 0.01f * u * u * u;
      narrow_gradient.as<memfit::bf16>()[i] = memfit::bf16(gradient.as<float>()[i]);
      parameter.as<float>()[i] = u;
    }
  }
  static arrays& all() {
    static arrays a;
    return a;
  }
};

/// Elements that one task of a plain loop covers.
constexpr std::int64_t task = std::int64_t{1} << 17;

template <class Body>
void in_tasks(memfit::host const& exec, std::int64_t n, Body const& body) {
  exec.for_each_task((n + task - 1) / task, [&](std::int64_t t) {
    exec.run(body.part(t * task, std::min(n, (t + 1) * task)));
  });
}

struct stream_16 {
  float* p;
  float const* g;
  std::uint32_t *s1, *s2;
  std::int64_t first = 0, last = 0;
  stream_16 part(std::int64_t from, std::int64_t to) const { return {p, g, s1, s2, from, to}; }
  template <class F>
  void operator()() const {
    constexpr int w = ops<F>::width;
    for (auto i = first; i < last; i += 4 * w) {
      for (auto j = i; j < i + 4 * w; j += w)
        ops<F>::store(p + j, memfit::fma(ops<F>::load(p + j), 0.999f, ops<F>::load(g + j)));
      ops<F>::store(s1 + i / 4, ops<F>::load(s1 + i / 4) + 1u);
      ops<F>::store(s2 + i / 4, ops<F>::load(s2 + i / 4) + 1u);
    }
  }
};

struct stream_12 {
  std::uint32_t* p;
  std::uint32_t const* g;
  std::uint32_t *kept, *s1, *s2;
  std::int64_t first = 0, last = 0;
  stream_12 part(std::int64_t from, std::int64_t to) const {
    return {p, g, kept, s1, s2, from, to};
  }
  template <class F>
  void operator()() const {
    constexpr int w = ops<F>::width;
    for (auto i = first; i < last; i += 4 * w) {
      for (auto j = i / 2; j < i / 2 + 2 * w; j += w)
        ops<F>::store(p + j, ops<F>::load(p + j) + ops<F>::load(g + j));
      for (auto* bytes : {kept, s1, s2})
        ops<F>::store(bytes + i / 4, ops<F>::load(bytes + i / 4) + 1u);
    }
  }
};

struct stream_quantize {
  std::uint32_t const* x;
  std::uint32_t* codes;
  std::int64_t first = 0, last = 0;
  stream_quantize part(std::int64_t from, std::int64_t to) const { return {x, codes, from, to}; }
  template <class F>
  void operator()() const {
    constexpr int w = ops<F>::width;
    for (auto i = first; i < last; i += 4 * w)
      ops<F>::store(codes + i / 4, ops<F>::load(x + i) + ops<F>::load(x + i + w) +
                                       ops<F>::load(x + i + 2 * w) + ops<F>::load(x + i + 3 * w));
  }
};

struct stream_dequantize {
  std::uint32_t const* codes;
  std::uint32_t* x;
  std::int64_t first = 0, last = 0;
  stream_dequantize part(std::int64_t from, std::int64_t to) const { return {codes, x, from, to}; }
  template <class F>
  void operator()() const {
    constexpr int w = ops<F>::width;
    for (auto i = first; i < last; i += 4 * w) {
      auto const c = ops<F>::load(codes + i / 4);
      for (int j = 0; j < 4; ++j) ops<F>::store(x + i + j * w, c >> (8 * j));
    }
  }
};

template <class Stream>
void stream(benchmark::State& state, Stream const& body, double bytes) {
  memfit::host const exec(static_cast<int>(state.range(1)));
  for (auto _ : state) in_tasks(exec, state.range(0), body);
  count(state, state.range(0), bytes);
}

template <class Format, class Param, class Gradient = float>
void step(benchmark::State& state) {
  using column = memfit::column_for<Param>;
  auto& a = arrays::all();
  auto const n = state.range(0);
  memfit::host const exec(static_cast<int>(state.range(1)));
  memfit::adamw const rule{.lr = 1e-6, .weight_decay = 0.01};
  memfit::step_item<memfit::adamw> item{};
  item.visible = a.parameter.as<void>();
  item.kept = a.kept.as<void>();
  item.gradient = (sizeof(Gradient) == 2 ? a.narrow_gradient : a.gradient).as<void>();
  item.gradient_kind = memfit::kind_of<Gradient>;
  item.count = n;
  item.moments[0] = {a.first.as<void>(), a.first_scales.as<float>()};
  item.moments[1] = {a.second.as<void>(), a.second_scales.as<float>()};
  for (std::int64_t i = 0; i < n; ++i) {
    auto const code = column::encode(static_cast<float>(i % 1000) * 1e-3f, 0u);
    a.parameter.as<typename column::code>()[i] = static_cast<typename column::code>(code.visible);
    if constexpr (!std::is_void_v<typename column::kept>)
      a.kept.as<typename column::kept>()[i] = static_cast<typename column::kept>(code.kept);
  }
  exec.fill(a.first.as<void>(), 0, n * 4);
  exec.fill(a.second.as<void>(), 0, n * 4);
  exec.fill(a.first_scales.as<void>(), 0, n / 8);
  exec.fill(a.second_scales.as<void>(), 0, n / 8);
  std::int64_t t = 0;
  for (auto _ : state) {
    item.constants = rule.at(++t);
    exec.step<memfit::adamw, Format, column>(item, {});
  }
  count(state, n, memfit::bench::step_bytes<Format, column, Gradient>());
}

template <class Storage>
memfit::tensor_ref<typename Storage::code> codes_of(std::int64_t n) {
  return {arrays::all().first.as<typename Storage::code>(),
          Storage::code_bytes(n) / Storage::code_size};
}
template <class Storage>
memfit::tensor_ref<typename Storage::scale> scales_of(std::int64_t n) {
  return {arrays::all().first_scales.as<typename Storage::scale>(),
          Storage::scale_bytes(n) / Storage::scale_size};
}

template <class Format, memfit::range R>
void quantize(benchmark::State& state) {
  auto const n = state.range(0);
  memfit::host const exec(static_cast<int>(state.range(1)));
  memfit::tensor_ref<float const> const x(arrays::all().gradient.as<float>(), n);
  auto const codes = codes_of<memfit::storage<Format, R>>(n);
  auto const scales = scales_of<memfit::storage<Format, R>>(n);
  for (auto _ : state) memfit::quantize<Format, R>(exec, x, codes, scales);
  count(state, n, memfit::bench::transform_bytes<Format>());
}

template <class Format, memfit::range R>
void dequantize(benchmark::State& state) {
  auto& a = arrays::all();
  auto const n = state.range(0);
  memfit::host const exec(static_cast<int>(state.range(1)));
  memfit::tensor_ref<float> const x(a.second.as<float>(), n);
  auto const codes = codes_of<memfit::storage<Format, R>>(n);
  auto const scales = scales_of<memfit::storage<Format, R>>(n);
  memfit::quantize<Format, R>(exec, memfit::tensor_ref<float const>(a.gradient.as<float>(), n),
                              codes, scales);
  for (auto _ : state) memfit::dequantize<Format, R>(exec, codes, scales, x);
  count(state, n, memfit::bench::transform_bytes<Format>());
}

template <class Function>
void add(std::string const& name, Function f) {
  auto* const b = benchmark::RegisterBenchmark(name.c_str(), f);
  b->UseRealTime()->Unit(benchmark::kMillisecond)->ArgNames({"n", "threads"});
  auto const all = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  for (std::int64_t n = std::int64_t{1} << 20; n <= most; n *= 8) {
    b->Args({n, 1});
    if (all > 1) b->Args({n, all});
  }
  b->Args({most, 1});
  if (all > 1) b->Args({most, all});
}

void add_steps() {
  memfit::bench::for_each_step(
      []<class Format, class Param>(std::string const& name) { add(name, step<Format, Param>); });
  using memfit::bf16, memfit::float8, memfit::corrected;
  add("step/adamw/float8/bf16/from_bf16", step<float8, bf16, bf16>);
  add("step/adamw/float8/corrected_bf16/from_bf16", step<float8, corrected<bf16>, bf16>);
}

void add_quantizers() {
  memfit::bench::for_each_quantizer([]<class Format, memfit::range R>(std::string const& name) {
    add("quantize/" + name, quantize<Format, R>);
    add("dequantize/" + name, dequantize<Format, R>);
  });
}

void add_streams() {
  add("stream/16B", [](benchmark::State& s) {
    auto& a = arrays::all();
    stream(s,
           stream_16{a.parameter.as<float>(), a.gradient.as<float>(), a.first.as<std::uint32_t>(),
                     a.second.as<std::uint32_t>()},
           16);
  });
  add("stream/12B", [](benchmark::State& s) {
    auto& a = arrays::all();
    stream(s,
           stream_12{a.parameter.as<std::uint32_t>(), a.narrow_gradient.as<std::uint32_t>(),
                     a.kept.as<std::uint32_t>(), a.first.as<std::uint32_t>(),
                     a.second.as<std::uint32_t>()},
           12);
  });
  add("stream/quantize", [](benchmark::State& s) {
    auto& a = arrays::all();
    stream(s, stream_quantize{a.gradient.as<std::uint32_t>(), a.first.as<std::uint32_t>()}, 5);
  });
  add("stream/dequantize", [](benchmark::State& s) {
    auto& a = arrays::all();
    stream(s, stream_dequantize{a.first.as<std::uint32_t>(), a.second.as<std::uint32_t>()}, 5);
  });
}

}  // namespace

int main(int argc, char** argv) {
  add_streams();
  add_steps();
  add_quantizers();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
