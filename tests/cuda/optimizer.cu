// The optimizer on memfit::cuda as its users meet it: the host's bits, graphs, streams, many
// tensors, refusals, and the way from one executor to another.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cuda/counted.hpp"
#include "cuda/tensors.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/memfit.cuh"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::tensor_ref;
using test::expect_same_states, test::refs, test::tensors;
using optimizer8 = memfit::optimizer<memfit::adamw, memfit::float8>;

constexpr memfit::adamw rule{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1};

std::vector<float> input(std::int64_t n, std::uint64_t seed) {
  return test::normal_input(n, seed);
}

std::vector<std::int64_t> const some{5000, 300, 0, 4096, 1, 4095};

TEST(cuda_optimizer, works_as_on_the_host) {
  tensors p(some, 1), g(some, 10);
  test::stream s;
  memfit::cuda const exec{s};
  optimizer8 host(memfit::host{1}, rule, p.on_host()), device(exec, rule, p.on_device_side());
  EXPECT_EQ(host.describe().state_bytes, device.describe().state_bytes);
  EXPECT_GT(device.describe().shared_bytes, host.describe().shared_bytes);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    g.set(100 * step);
    if (step == 2) g.device[0].set(g.host[0] = std::vector<float>(5000, std::nanf("")));
    host.rule().lr = device.rule().lr = 0.01 / static_cast<double>(step);
    host.step(g.on_host());
    device.step(g.on_device_side());
    s.wait();
  }
  host.keep_fp32("t0");
  device.keep_fp32("t0");
  host.step_one(0, g.on_host()[0]);
  device.step_one(0, g.on_device_side()[0]);
  auto without_the_second = [](refs r) {
    r[1] = {};
    return r;
  };
  host.step(without_the_second(g.on_host()));
  device.step(without_the_second(g.on_device_side()));
  s.wait();
  p.expect_same();
  expect_same_states(host, device);
  EXPECT_EQ(device.nonfinite_sync(), 5000u);
  EXPECT_EQ(device.steps_sync(1), 3);
}

TEST(cuda_optimizer, added_tensors_join_those_that_have_stepped) {
  tensors p(some, 1), g(some, 10);
  optimizer8 host(memfit::host{1}, rule), device(memfit::cuda{}, rule);
  for (std::size_t i = 0; i < some.size(); ++i) {
    host.add(p.on_host()[i]);
    device.add(p.on_device_side()[i]);
    auto h = g.on_host(), d = g.on_device_side();
    h.resize(i + 1);
    d.resize(i + 1);
    host.step(h);
    device.step(d);
  }
  p.expect_same();
  expect_same_states(host, device);
  EXPECT_EQ(device.steps_sync(0), static_cast<std::int64_t>(some.size()));
  EXPECT_EQ(device.steps_sync(5), 1);
}

/// A rule with a scalar call operator, which knows of no lanes.
struct plain_rule {
  double lr = 0.1;
  static constexpr std::array<memfit::slot, 1> slots{{{"buffer", memfit::range::any}}};
  struct constants {
    float lr;
    MEMFIT_HD void operator()(float& p, float g, float (&s)[1]) const {
      s[0] = memfit::fma(0.5f, s[0], g);
      p = memfit::fma(-lr, s[0], p);
    }
  };
  MEMFIT_HD constants at(std::int64_t) const { return {static_cast<float>(lr)}; }
};

TEST(cuda_optimizer, takes_a_users_rule_written_for_floats) {
  tensors p({700}, 1), g({700}, 2);
  using optimizer = memfit::optimizer<plain_rule, memfit::dynamic8>;
  memfit::optimizer_options const all{.min_quantized = 1};
  optimizer host(memfit::host{1}, {}, p.on_host(), all);
  optimizer device(memfit::cuda{}, {}, p.on_device_side(), all);
  for (int i = 0; i < 3; ++i) {
    host.step(g.on_host());
    device.step(g.on_device_side());
  }
  p.expect_same();
  EXPECT_EQ(host.moment_sync(0, 0), device.moment_sync(0, 0));
}

/// A rule under which no gradient, however large, makes anything but a finite parameter.
struct sign_rule {
  double lr = 0.1;
  static constexpr std::array<memfit::slot, 0> slots{};
  struct constants {
    float lr;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g) const {
      p = p + memfit::select(g > F(0.0f), F(-lr), F(lr));
    }
  };
  MEMFIT_HD constants at(std::int64_t) const { return {static_cast<float>(lr)}; }
};

TEST(cuda_optimizer, leaves_elements_alone_whose_gradient_is_not_finite_whatever_the_rule) {
  tensors p({4096}, 1), g({4096}, 2);
  g.host[0][5] = INFINITY;
  g.host[0][600] = -INFINITY;
  g.host[0][4095] = std::nanf("");
  g.device[0].set(g.host[0]);
  auto const start = p.host[0];
  memfit::optimizer<sign_rule, memfit::fp32> host(memfit::host{1}, {}, p.on_host());
  memfit::optimizer<sign_rule, memfit::fp32> device(memfit::cuda{}, {}, p.on_device_side());
  host.step(g.on_host());
  device.step(g.on_device_side());
  p.expect_same();
  for (std::size_t i : {5u, 600u, 4095u}) EXPECT_EQ(p.host[0][i], start[i]);
  EXPECT_EQ(device.nonfinite_sync(), 3u);
}

TEST(cuda_optimizer, moves_between_host_and_device_bit_for_bit) {
  using optimizer = memfit::optimizer<memfit::adamw, memfit::dynamic8, memfit::split<memfit::bf16>>;
  std::vector<memfit::bf16> start;
  for (auto x : input(5000, 1)) start.emplace_back(x);
  auto moved = start;
  std::vector<memfit::bf16> const stays = start;
  test::on_device<memfit::bf16> there(start);
  tensors g({5000}, 5);
  auto view = [](auto* data) { return std::vector{tensor_ref<memfit::bf16>{data, 5000, "w"}}; };
  optimizer host(memfit::host{1}, rule, view(start.data()));
  host.step(g.on_host());
  host.step(g.on_host());
  there.set(start);
  auto device = host.to(memfit::cuda{}, view(there.data()));
  host.step(g.on_host());
  device.step(g.on_device_side());
  expect_same_states(host, device);
  moved = there.get();
  auto back = device.to(memfit::host{2}, view(moved.data()));
  host.step(g.on_host());
  back.step(g.on_host());
  expect_same_states(host, back);
  for (std::size_t i = 0; i < start.size(); ++i) ASSERT_EQ(moved[i].bits, start[i].bits) << i;
  auto short_one = view(there.data());
  short_one[0].count = 4999;
  test::expect_refusal<memfit::argument_error>([&] { (void)host.to(memfit::cuda{}, short_one); },
                                               {"optimizer::to", "w", "4999", "5000"});
}

/// A step of 2^20 parameters, whose work an interpreter can count.
template <class Format>
void a_million_parameters() {
  constexpr std::int64_t n = std::int64_t{1} << 20;
  tensors p({n}, 1), g({n}, 2);
  using optimizer = memfit::optimizer<memfit::adamw, Format>;
  optimizer host(memfit::host{2}, rule, p.on_host()),
      device(memfit::cuda{}, rule, p.on_device_side());
  for (int i = 0; i < 2; ++i) {
    host.step(g.on_host());
    device.step(g.on_device_side());
  }
  p.expect_same();
  expect_same_states(host, device);
}
TEST(cuda_million, float8) {
  a_million_parameters<memfit::float8>();
}
TEST(cuda_million, dynamic8) {
  a_million_parameters<memfit::dynamic8>();
}

TEST(cuda_streams, two_optimizers_on_two_streams_do_not_interfere) {
  tensors p(some, 1), q(some, 2), g(some, 10), h(some, 20);
  test::stream a, b;
  optimizer8 on_a(memfit::cuda{a}, rule, p.on_device_side()),
      on_b(memfit::cuda{b}, rule, q.on_device_side());
  optimizer8 one(memfit::host{1}, rule, p.on_host()), other(memfit::host{1}, rule, q.on_host());
  // While one stream is captured, whatever strayed into it from the other would end in its graph.
  test::graph const step(a, [&] {
    on_a.step(g.on_device_side());
    on_b.step(h.on_device_side());
  });
  other.step(h.on_host());
  b.wait();
  q.expect_same();
  EXPECT_EQ(on_b.steps_sync(0), 1);
  for (int i = 0; i < 3; ++i) {
    step.launch(a);
    on_b.step(h.on_device_side());
    one.step(g.on_host());
    other.step(h.on_host());
  }
  a.wait();
  b.wait();
  p.expect_same();
  q.expect_same();
  expect_same_states(one, on_a);
  expect_same_states(other, on_b);
}

/// A column whose encoding asks the whole warp.
struct asking_column : memfit::detail::plain_column<memfit::fp32> {
  template <class F>
  MEMFIT_HD static memfit::parameter_code<memfit::uint_of<F>> encode(F const& x,
                                                                     memfit::uint_of<F> const&) {
    bool const any = memfit::any<F>(x > F(1e30f));
    auto const c = memfit::bits(any ? F(1.0f) : x);
    return {c, c};
  }
};
TEST(cuda_optimizer, a_column_may_ask_the_whole_warp) {
  tensors p({301}, 1), g({301}, 2);
  g.host[0][7] = std::nanf("");
  g.device[0].set(g.host[0]);
  using optimizer = memfit::optimizer<memfit::adamw, memfit::fp32, asking_column>;
  optimizer host(memfit::host{1, memfit::isa::scalar}, rule, p.on_host());
  optimizer device(memfit::cuda{}, rule, p.on_device_side());
  host.step(g.on_host());
  device.step(g.on_device_side());
  p.expect_same();
}

TEST(cuda_many, registering_takes_time_in_proportion) {
  auto const once = [](std::int64_t tensors_in_all) {
    test::on_device<float> const p(tensors_in_all);
    optimizer8 opt(memfit::cuda{}, rule);
    auto const start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < tensors_in_all; ++i) opt.add(tensor_ref<float>{p.data() + i, 1});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto const best = [&](std::int64_t n) { return std::min({once(n), once(n), once(n)}); };
  EXPECT_LT(best(16'000), 24 * best(2'000)) << "eight times the tensors";
}

TEST(cuda_many, ten_thousand_tensors_are_one_pass) {
  constexpr std::int64_t tensors_in_all = 10'000, count = 1'000;
  auto const start = input(tensors_in_all * count, 1), gradient = input(tensors_in_all * count, 2);
  auto slices = [](float* data) {
    refs r;
    for (std::int64_t i = 0; i < tensors_in_all; ++i) r.push_back({data + i * count, count});
    return r;
  };
  auto on_host = start;
  test::on_device<float> p(start), g(gradient);
  memfit::optimizer_options const options{.min_quantized = 1};
  optimizer8 host(memfit::host{2}, rule, slices(on_host.data()), options);
  optimizer8 device(memfit::cuda{}, rule, slices(p.data()), options);
  auto gradient_on_host = gradient;
  for (int i = 0; i < 3; ++i) {
    auto const before = test::launches(), waited = test::waits();
    device.step(slices(g.data()));
    auto const used = test::launches() - before;
    if (i > 0 && before >= 0) {
      EXPECT_EQ(used, 2) << "the step counters, and one pass over everything";
    }
    EXPECT_EQ(test::waits(), waited) << "a step waits for nothing";
    host.step(slices(gradient_on_host.data()));
  }
  EXPECT_EQ(p.get(), on_host);
  EXPECT_TRUE(p.intact());
  EXPECT_EQ(device.steps_sync(9'999), 3);
}

TEST(cuda_many, groups_are_one_pass_more_groups_than_an_argument_carries_too) {
  std::vector<std::int64_t> const counts(60, 100);
  tensors p(counts, 1), g(counts, 2);
  test::stream s;
  optimizer8 host(memfit::host{1}, rule, p.on_host()),
      device(memfit::cuda{s}, rule, p.on_device_side());
  auto const step = [&](long long begins) {
    auto const before = test::launches(), waited = test::waits();
    device.step(g.on_device_side());
    if (before >= 0) EXPECT_EQ(test::launches() - before, begins + 1);
    EXPECT_EQ(test::waits(), waited);
    host.step(g.on_host());
  };
  auto const add_groups = [&](std::size_t until) {
    while (host.groups() < until) {
      auto const number = host.groups();
      auto const change = [&](auto& r) { r.lr = 1e-3 * static_cast<double>(number); };
      host.set_group(number, host.add_group({}, change));
      device.set_group(number, device.add_group({}, change));
    }
    host.step(g.on_host());
    device.step(g.on_device_side());  // tells the device of the groups
  };
  add_groups(20);
  step(1);
  add_groups(60);
  step(3);
  std::vector<memfit::adamw> rules(60, rule);
  for (std::size_t i = 0; i < 60; ++i) rules[i].weight_decay = 0.01 * static_cast<double>(i);
  test::on_device<memfit::adamw> const there(rules);
  host.rule_from(rules.data());
  device.rule_from(there.data());
  step(1);
  s.wait();
  p.expect_same();
  expect_same_states(host, device);
}

TEST(cuda_refusals, an_allocation_that_fails_leaves_everything_unchanged) {
  tensors p({5000, 300}, 1), g({5000, 300}, 10);
  optimizer8 device(memfit::cuda{}, rule, p.on_device_side()),
      host(memfit::host{1}, rule, p.on_host());
  host.step(g.on_host());
  device.step(g.on_device_side());
  auto const before = device.describe().text();
  // From an address above those of the registered tensors, so that nothing overlaps.
  std::int64_t const huge = std::int64_t{1} << 55;
  std::vector<test::on_device<float>> others;
  for (int i = 0; i < 32; ++i) others.emplace_back(1);
  auto* highest = others[0].data();
  for (auto const& o : others) highest = std::max(highest, o.data());
  ASSERT_GT(highest, std::max(p.device[0].data(), p.device[1].data()));
  test::expect_refusal<memfit::memory_error>(
      [&] {
        device.add(tensor_ref<float>{highest, huge, "huge"});
      },
      {"optimizer::add", "'huge'", std::to_string(huge), "cudaMalloc",
       "cudaErrorMemoryAllocation"});
  EXPECT_EQ(device.describe().text(), before);
  host.step(g.on_host());
  device.step(g.on_device_side());
  p.expect_same();
  expect_same_states(host, device);
}

TEST(cuda_refusals, memory_of_the_host_is_refused_by_name) {
  tensors p({5000, 300}, 1), g({5000, 300}, 10);
  optimizer8 opt(memfit::cuda{}, rule, p.on_device_side());
  auto const before = opt.describe().text();
  std::vector<float> on_host(10);
  test::expect_refusal<memfit::argument_error>(
      [&] {
        opt.add(tensor_ref<float>{on_host.data(), 10, "lost"});
      },
      {"optimizer::add", "'lost'", "10", "memory of the host"});
  EXPECT_EQ(opt.describe().text(), before);
  test::expect_refusal<memfit::argument_error>([&] { opt.step(g.on_host()); },
                                               {"optimizer::step", "'t0'", "5000", "host"});
  test::expect_refusal<memfit::argument_error>([&] { opt.rule_from(&rule); }, {"rule_from"});
  EXPECT_EQ(opt.steps_sync(0), 0);
}

TEST(cuda_refusals, numbers_for_the_host_are_refused_in_a_capture_which_goes_on) {
  tensors p({5000}, 1), g({5000}, 10);
  test::stream s;
  optimizer8 device(memfit::cuda{s}, rule, p.on_device_side());
  optimizer8 host(memfit::host{1}, rule, p.on_host());
  test::graph const step(s, [&] {
    device.step(g.on_device_side());
    test::expect_refusal<memfit::device_error>([&] { (void)device.steps_sync(0); },
                                               {"optimizer::steps_sync", "'t0'", "captured"});
  });
  step.launch(s);
  host.step(g.on_host());
  s.wait();
  p.expect_same();
}

TEST(cuda_refusals, a_device_that_does_not_exist_is_named) {
  tensors p({300}, 1);
  test::expect_refusal<memfit::device_error>(
      [&] {
        optimizer8(memfit::cuda{nullptr, 1000}, rule, p.on_device_side());
      },
      {"cudaSetDevice", "cudaErrorInvalidDevice"});
  EXPECT_NO_THROW(optimizer8(memfit::cuda{nullptr, 0}, rule, p.on_device_side()));
}

}  // namespace

/// For plain.cpp, which no CUDA compiler sees.
optimizer8 made_on_device(memfit::cuda exec, refs const& parameters) {
  return {exec, rule, parameters};
}
