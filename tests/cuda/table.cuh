// One row of the table rule x format x parameter column on the device: the host driver's bits.
// Used by one .cu per format, which lists its rows.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda/device.hpp"
#include "memfit/exec/cuda.cuh"
#include "memfit/exec/host/dry_run.hpp"
#include "memfit/exec/host/step.hpp"
#include "memfit/rule/adaptive.hpp"
#include "memfit/rule/momentum.hpp"
#include "support/inputs.hpp"

namespace test {

/// Hyper-parameters off their defaults, so that no term can hide.
template <class Rule>
Rule unusual();
template <>
inline memfit::sgd unusual() {
  return {.lr = 0.05, .weight_decay = 0.1};
}
template <>
inline memfit::momentum unusual() {
  return {.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .nesterov = true, .weight_decay = 0.1};
}
template <>
inline memfit::adam unusual() {
  return {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
}
template <>
inline memfit::adamw unusual() {
  return {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
}

/// A tensor of the table: length, offset from an aligned address in elements, and its inputs.
struct table_tensor {
  std::int64_t count, offset;
  kind values;
};
inline std::vector<table_tensor> table_tensors() {
  std::vector<table_tensor> all;
  for (std::int64_t n : {0, 1, 255, 256, 257, 4096}) {
    all.push_back({n, 0, all_kinds[all.size() % std::size(all_kinds)]});
    all.push_back({n, 1, all_kinds[all.size() % std::size(all_kinds)]});
    all.push_back({n, 0, kind::sparse});
  }
  all.push_back({100'003, 0, kind::normal});
  all.push_back({100'003, 3, kind::lognormal});
  return all;
}

inline constexpr int table_steps = 50;

/// Gradients of one tensor, as bits of each element type; the same for every row.
inline std::vector<float> const& table_gradient(std::size_t tensor, int step) {
  constexpr int distinct = 5;
  static std::vector<std::vector<float>> cache(table_tensors().size() * distinct);
  auto& values = cache[tensor * distinct + static_cast<std::size_t>(step % distinct)];
  auto const t = table_tensors()[tensor];
  if (values.empty())
    values =
        make_input(t.values, t.count, 100 * tensor + static_cast<std::size_t>(step % distinct));
  return values;
}

/// Bytes on the host and the same bytes on the device.
struct twin {
  std::vector<unsigned char> host;
  std::unique_ptr<on_device<unsigned char>> device;

  twin() = default;
  twin(std::int64_t bytes, std::int64_t offset, unsigned char fill)
      : host(static_cast<std::size_t>(bytes), fill),
        device(std::make_unique<on_device<unsigned char>>(bytes, offset)) {
    send();
  }
  void send() { device->set(host); }
  bool same() const { return device->get() == host && device->intact(); }
};

template <class Rule, class Format, class Column>
class table_row_test {
  static constexpr int slots = memfit::slot_count<Rule>;
  using item = memfit::step_item<Rule>;
  using code = typename Column::code;

  struct tensor {
    table_tensor shape;
    twin visible, kept, gradient;
    std::vector<twin> codes, scales;
    twin steps{8, 0, 0};
    memfit::scalar_kind gradient_kind = memfit::scalar_kind::fp32;
  };

 public:
  table_row_test() : list_(memfit::cuda{stream_}.steps<Rule, Format, Column>()) {
    auto const shapes = table_tensors();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      tensors_.push_back(make(i, shapes[i], std::make_integer_sequence<int, slots>()));
      list_->add(item_of(tensors_.back(), i, true));
    }
  }

  void run() {
    for (int step = 1; step <= table_steps; ++step) {
      // Multipliers none, 1/65536, 0 and odd ones; every seventh step is skipped.
      float const multipliers[] = {1.0f, 1.0f / 65536, 0.0f, 0.7f, 1.0f};
      bool const skipped = step % 7 == 3;
      one_step(step, step % 5 == 1 ? nullptr : &multipliers[step % 5], skipped);
      if (step <= 2 || step == 7 || step == table_steps) compare(step);
      if (testing::Test::HasFailure()) return;
    }
  }

 private:
  template <int... I>
  tensor make(std::size_t i, table_tensor shape, std::integer_sequence<int, I...>) {
    tensor t;
    t.shape = shape;
    t.visible = twin(bytes_of<code>(shape), bytes_of_offset<code>(shape), 0);
    if constexpr (!std::is_void_v<typename Column::kept>)
      t.kept = twin(bytes_of<typename Column::kept>(shape),
                    bytes_of_offset<typename Column::kept>(shape), 0);
    auto const start =
        make_input(shape.values == kind::zeros ? kind::normal : shape.values, shape.count, i);
    for (std::size_t j = 0; j < start.size(); ++j) {
      auto const c = Column::encode(start[j], 0u);
      put<code>(t.visible, j, c.visible);
      if constexpr (!std::is_void_v<typename Column::kept>)
        put<typename Column::kept>(t.kept, j, c.kept);
    }
    t.visible.send();
    if (t.kept.device) t.kept.send();
    (add_moment<memfit::slot_storage<Rule, Format, I>>(t), ...);
    t.gradient_kind = static_cast<memfit::scalar_kind>(i % 3);
    auto const size = memfit::bytes_of(t.gradient_kind);
    t.gradient = twin(shape.count * size, shape.offset * size, 0);
    return t;
  }
  template <class Storage>
  void add_moment(tensor& t) {
    t.codes.emplace_back(Storage::code_bytes(t.shape.count), Storage::code_bytes(t.shape.offset),
                         Storage::zero_byte);
    t.scales.emplace_back(Storage::scale_bytes(t.shape.count), 0, 0);
  }
  template <class T>
  static std::int64_t bytes_of(table_tensor const& s) {
    return s.count * std::int64_t{sizeof(T)};
  }
  template <class T>
  static std::int64_t bytes_of_offset(table_tensor const& s) {
    return s.offset * std::int64_t{sizeof(T)};
  }
  template <class T>
  static void put(twin& to, std::size_t j, std::uint32_t pattern) {
    auto const c = static_cast<T>(pattern);
    std::memcpy(to.host.data() + j * sizeof c, &c, sizeof c);
  }

  static void* place(twin& t, bool device) {
    if (!t.device) return nullptr;
    return device ? t.device->data() : t.host.data();
  }
  item item_of(tensor& t, std::size_t i, bool device) {
    item x{};
    x.visible = place(t.visible, device);
    x.kept = place(t.kept, device);
    x.gradient = place(t.gradient, device);
    x.gradient_kind = t.gradient_kind;
    x.count = t.shape.count;
    for (std::size_t s = 0; s < t.codes.size(); ++s)
      x.moments[s] = {place(t.codes[s], device), place(t.scales[s], device)};
    x.steps = static_cast<std::int64_t*>(place(t.steps, device));
    x.id = static_cast<std::int64_t>(i);
    return x;
  }

  void set_gradient(tensor& t, std::size_t i, int step) {
    auto const& values = table_gradient(i, step);
    for (std::size_t j = 0; j < values.size(); ++j) {
      if (t.gradient_kind == memfit::scalar_kind::fp32)
        put<std::uint32_t>(t.gradient, j, memfit::fp32_codec::encode(values[j]));
      else
        put<std::uint16_t>(t.gradient, j,
                           t.gradient_kind == memfit::scalar_kind::bf16
                               ? memfit::bf16_codec::encode(values[j])
                               : memfit::fp16_codec::encode(values[j]));
    }
    t.gradient.send();
  }

  void one_step(int step, float const* multiplier, bool skipped) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) set_gradient(tensors_[i], i, step);
    on_device<float> const device_multiplier(std::vector<float>{multiplier ? *multiplier : 1.0f});
    on_device<std::uint32_t> const skip(std::vector<std::uint32_t>{skipped ? 1u : 0u});
    auto const rule = unusual<Rule>();
    float const limit = multiplier ? 1e-5f : std::numeric_limits<float>::infinity();
    list_->step(0, std::ssize(tensors_),
                {.rules = &rule,
                 .seed = seed,
                 .gate_at = {multiplier ? device_multiplier.data() : nullptr, skip.data(), limit},
                 .nonfinite = nonfinite_device_.data()});
    stream_.wait();
    if (skipped) return;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      auto x = item_of(tensors_[i], i, false);
      if (auto const number = x.next_step(); number != 0) x.begin(rule.at(number), seed, number);
      if constexpr (memfit::layerwise_rule<Rule>) measure(x, multiplier ? *multiplier : 1, limit);
      memfit::detail::step_body<Rule, Format, Column>{
          x, 0, x.count, multiplier ? *multiplier : 1.0f, limit, &nonfinite_}
          .template operator()<float>();
    }
  }

  static void measure(item& x, float multiplier, float limit) {
    memfit::detail::layer_parts parts(&x, 1);
    memfit::detail::dry_run_body<Rule, Format, Column>{x,          0,     x.count,
                                                       multiplier, limit, parts.of(0)}
        .template operator()<float>();
    x.constants =
        x.constants.with(memfit::detail::norms_of(parts.of(0), memfit::detail::sum_parts(x.count)));
  }

  void compare(int step) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      auto const& t = tensors_[i];
      SCOPED_TRACE("step " + std::to_string(step) + ", tensor " + std::to_string(i) + " of " +
                   std::to_string(t.shape.count) + " elements, " + name_of(t.shape.values));
      EXPECT_TRUE(t.visible.same()) << "parameters";
      EXPECT_TRUE(t.gradient.same()) << "gradients";
      if (t.kept.device) {
        EXPECT_TRUE(t.kept.same()) << "kept";
      }
      for (auto const& c : t.codes) EXPECT_TRUE(c.same()) << "codes";
      for (auto const& s : t.scales) EXPECT_TRUE(s.same()) << "scales";
      EXPECT_TRUE(t.steps.same()) << "counter";
    }
    EXPECT_EQ(nonfinite_device_.get()[0], nonfinite_);
  }

  static constexpr std::uint64_t seed = 7;
  stream stream_;
  std::vector<tensor> tensors_;
  std::uint64_t nonfinite_ = 0;
  on_device<std::uint64_t> nonfinite_device_{std::vector<std::uint64_t>{0}};
  memfit::owner<memfit::step_list<Rule>> list_;
};

/// Every rule with this format and parameter column.
template <class Format, class Param>
void all_rules() {
  using column = memfit::column_for<Param>;
  auto const row = []<class Rule>(char const* name, Rule) {
    SCOPED_TRACE(name);
    table_row_test<Rule, Format, column>().run();
  };
  row("sgd", memfit::sgd{});
  row("momentum", memfit::momentum{});
  row("adam", memfit::adam{});
  row("adamw", memfit::adamw{});
}

}  // namespace test

/// The rows of one format, a test per parameter column.
#define MEMFIT_TEST_TABLE_OF(name, ...)                               \
  TEST(cuda_table_##name, fp32) {                                     \
    test::all_rules<__VA_ARGS__, memfit::fp32>();                     \
  }                                                                   \
  TEST(cuda_table_##name, bf16) {                                     \
    test::all_rules<__VA_ARGS__, memfit::bf16>();                     \
  }                                                                   \
  TEST(cuda_table_##name, fp16) {                                     \
    test::all_rules<__VA_ARGS__, memfit::fp16>();                     \
  }                                                                   \
  TEST(cuda_table_##name, stochastic_bf16) {                          \
    test::all_rules<__VA_ARGS__, memfit::stochastic<memfit::bf16>>(); \
  }                                                                   \
  TEST(cuda_table_##name, split_bf16) {                               \
    test::all_rules<__VA_ARGS__, memfit::split<memfit::bf16>>();      \
  }                                                                   \
  TEST(cuda_table_##name, master_bf16) {                              \
    test::all_rules<__VA_ARGS__, memfit::master<memfit::bf16>>();     \
  }                                                                   \
  TEST(cuda_table_##name, master_fp16) {                              \
    test::all_rules<__VA_ARGS__, memfit::master<memfit::fp16>>();     \
  }
