// What the benchmarks of the step and of the quantizers share on every executor: their cases, the
// bytes that these move, and the counters. Used by the benchmark programs.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "memfit/codec/column.hpp"
#include "memfit/codec/companded.hpp"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/float.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/packed4.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/codec/storage.hpp"

namespace memfit::bench {

/// Bytes of the code of one element, and of its share of the block's scale.
template <class Format>
constexpr double code_bytes() {
  using stored = storage<Format, range::any>;
  constexpr std::int64_t many = 1 << 20;
  return static_cast<double>(stored::code_bytes(many) + stored::scale_bytes(many)) / many;
}

/// Bytes that a step with two moments moves per parameter: all but the gradient is read and
/// written.
template <class Format, class Column, class Gradient = float>
constexpr double step_bytes() {
  double parameter = sizeof(typename Column::code);
  if constexpr (!std::is_void_v<typename Column::kept>) parameter += sizeof(typename Column::kept);
  return sizeof(Gradient) + 2 * parameter + 4 * code_bytes<Format>();
}

/// Bytes that coding an fp32, or decoding to one, moves.
template <class Format>
constexpr double transform_bytes() {
  return 4 + code_bytes<Format>();
}

/// The counters of a benchmark whose iterations each take n elements and move `bytes` for each.
inline void count(benchmark::State& state, std::int64_t n, double bytes) {
  auto const done = static_cast<double>(state.iterations()) * static_cast<double>(n);
  state.counters["elements/s"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
  state.counters["bytes/s"] = benchmark::Counter(done * bytes, benchmark::Counter::kIsRate);
}

/// Calls `use.template operator()<Format>(name)` for every state format of the benchmarks.
template <class Use>
void for_each_format(Use const& use) {
  use.template operator()<fp32>("fp32");
  use.template operator()<bf16>("bf16");
  use.template operator()<root8>("root8");
  use.template operator()<float8>("float8");
  use.template operator()<dynamic8>("dynamic8");
  use.template operator()<linear8>("linear8");
  use.template operator()<companded8>("companded8");
  use.template operator()<packed4>("packed4");
}

template <class Format, class... Others>
inline constexpr bool is_one_of = (std::is_same_v<Format, Others> || ...);

/// Calls `use.template operator()<Format, Param>(name)` for every step of the benchmarks.
template <class Use>
void for_each_step(Use const& use) {
  for_each_format([&]<class Format>(std::string const& state) {
    auto const name = "step/adamw/" + state;
    use.template operator()<Format, fp32>(name + "/fp32");
    if constexpr (is_one_of<Format, fp32, root8, float8>) {
      use.template operator()<Format, bf16>(name + "/bf16");
      use.template operator()<Format, split<bf16>>(name + "/split_bf16");
    }
  });
}

/// Calls `use.template operator()<Format, range>(name)` for every quantizer of the benchmarks.
template <class Use>
void for_each_quantizer(Use const& use) {
  for_each_format([&]<class Format>(std::string const& name) {
    if constexpr (codec_for<Format, range::any>::scaled) {
      use.template operator()<Format, range::any>(name);
      use.template operator()<Format, range::non_negative>(name + "/non_negative");
    }
  });
}

}  // namespace memfit::bench
