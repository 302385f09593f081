// What happens around a step: absent gradients, single tensors, changed hyper-parameters, gradient
// types. Each tensor counts its own steps.
#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>
#include <vector>

#include "optimizer/model.hpp"
#include "support/inputs.hpp"
#include "support/reference_of.hpp"

namespace {

constexpr memfit::adamw rule{
    .lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};

static_assert(std::is_same_v<memfit::optimizer<memfit::adamw>,
                             memfit::optimizer<memfit::adamw, memfit::root8>>);

using adamw8 = test::model<memfit::adamw, memfit::float8>;
using refs = std::vector<memfit::tensor_ref<float const>>;

std::vector<float> input(std::int64_t n, std::uint64_t seed) {
  return test::make_input(test::kind::normal, n, seed);
}
memfit::tensor_ref<float const> view(std::vector<float> const& v) {
  return {v.data(), static_cast<std::int64_t>(v.size())};
}

TEST(step, an_absent_gradient_leaves_its_tensor_and_counter) {
  adamw8 m(memfit::host{1}, rule, {input(300, 1), input(300, 2)});
  auto const g = input(300, 3);
  m.optimizer().step(refs{view(g), view(g)});
  auto const parameter = m.parameter(1), first = m.optimizer().moment_sync(1, 0);
  m.optimizer().step(refs{view(g), {}});
  EXPECT_EQ(m.parameter(1), parameter);
  EXPECT_EQ(m.optimizer().moment_sync(1, 0), first);
  EXPECT_EQ(m.optimizer().steps_sync(0), 2);
  EXPECT_EQ(m.optimizer().steps_sync(1), 1);
}

TEST(step, tensor_by_tensor_equals_all_at_once) {
  test::vectors const start{input(300, 1), input(7, 2), input(70'001, 3)};
  adamw8 whole(memfit::host{2}, rule, start), single(memfit::host{2}, rule, start);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    test::vectors const g{input(300, 10 * step), input(7, 10 * step + 1),
                          input(70'001, 10 * step + 2)};
    whole.optimizer().step(g);
    for (std::int64_t i : {2, 0, 1}) single.optimizer().step_one(i, g[static_cast<std::size_t>(i)]);
    ASSERT_EQ(whole.bytes(), single.bytes());
  }
}

TEST(step, reads_hyper_parameters_anew_each_time) {
  test::model<memfit::sgd, memfit::fp32> m(memfit::host{1}, {.lr = 1.0}, {{8.0f}});
  m.optimizer().step(test::vectors{{1.0f}});
  EXPECT_EQ(m.parameter(0)[0], 7.0f);
  m.optimizer().rule().lr = 0.5;
  m.optimizer().step(test::vectors{{1.0f}});
  EXPECT_EQ(m.parameter(0)[0], 6.5f);
}

TEST(step, a_group_steps_as_an_optimizer_of_its_own_would) {
  adamw8 m(memfit::host{2}, rule, {input(300, 1), input(70'001, 2), input(7, 3)});
  auto quick = rule;
  quick.lr = 0.1;
  quick.weight_decay = 0;
  adamw8 alone(memfit::host{1}, quick, {input(70'001, 2)});
  m.optimizer().add_group({"t1"}, [&](auto& r) { r = quick; });
  for (std::uint64_t step = 1; step <= 3; ++step) {
    test::vectors const g{input(300, 10 * step), input(70'001, 10 * step + 1), input(7, step)};
    if (step == 2) m.optimizer().freeze("t?");
    m.optimizer().step(g);
    m.optimizer().unfreeze("*");
    if (step != 2) alone.optimizer().step(test::vectors{g[1]});
  }
  EXPECT_EQ(m.parameter(1), alone.parameter(0));
  EXPECT_EQ(m.optimizer().moment_sync(1, 0), alone.optimizer().moment_sync(0, 0));
  EXPECT_EQ(m.optimizer().moment_sync(1, 1), alone.optimizer().moment_sync(0, 1));
}

TEST(step, takes_gradients_of_any_float_type) {
  auto const start = input(1000, 1);
  auto g = input(1000, 2);
  for (auto& x : g) x = static_cast<float>(memfit::bf16(std::copysign(std::fabs(x) + 0.01f, x)));
  test::guarded<memfit::bf16> narrow(g, 1);
  test::guarded<memfit::fp16> half(g, 1);
  test::guarded<memfit::fp32> wide(g, 1);
  adamw8 expected(memfit::host{1}, rule, {start}), from_bf16(memfit::host{1}, rule, {start}),
      from_fp16(memfit::host{1}, rule, {start}), from_fp32(memfit::host{1}, rule, {start});
  expected.optimizer().step_one(0, g);
  from_bf16.optimizer().step_one(0, narrow.ref());
  from_fp16.optimizer().step_one(0, half.ref());
  from_fp32.optimizer().step_one(0, wide.ref());
  EXPECT_EQ(from_bf16.bytes(), expected.bytes());
  EXPECT_EQ(from_fp16.bytes(), expected.bytes());
  EXPECT_EQ(from_fp32.bytes(), expected.bytes());
}

TEST(step, writes_no_gradient) {
  adamw8 m(memfit::host{2}, rule, {input(1000, 1)});
  test::guarded<float> g(input(1000, 2), 1);
  auto const before = g.snapshot();
  m.optimizer().step_one(0, g.ref());
  EXPECT_EQ(g.snapshot(), before);
  EXPECT_TRUE(g.intact() && m.intact());
}

TEST(step, fp32_states_stay_on_the_reference_over_many_steps) {
  constexpr std::size_t count = 300;
  constexpr int steps = 500;
  auto const start = input(count, 1);
  test::model<memfit::adamw, memfit::fp32> m(memfit::host{1}, rule, {start});
  std::vector<reference::element<double>> exact;
  for (float p : start) exact.push_back({p, {}});
  for (int step = 1; step <= steps; ++step) {
    auto const g = input(count, static_cast<std::uint64_t>(100 + step));
    m.optimizer().step(test::vectors{g});
    for (std::size_t i = 0; i < count; ++i) reference::of(rule)(exact[i], double{g[i]}, step);
  }
  auto const p = m.parameter(0), first = m.optimizer().moment_sync(0, 0),
             second = m.optimizer().moment_sync(0, 1);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_NEAR(p[i], exact[i].p, 2e-5);
    EXPECT_NEAR(first[i], exact[i].s[0], 1e-6);
    EXPECT_NEAR(second[i], exact[i].s[1], 1e-6);
  }
}

/// Where exact Adam travels 300 small steps, eight-bit states must arrive nearby: an error that
/// grows from step to step would not. The gradients of a block span `octaves` powers of two.
template <class Format>
double distance_travelled_apart(std::size_t octaves) {
  constexpr std::size_t count = 1024;
  memfit::adamw const slow{.lr = 1e-3, .weight_decay = 0.01};
  std::vector<float> const start(count, 0.5f);
  test::model<memfit::adamw, Format> m(memfit::host{1}, slow, {start});
  std::vector<reference::element<double>> exact(count, {0.5, {}});
  for (int step = 1; step <= 300; ++step) {
    auto g = input(count, static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < count; ++i)
      g[i] = (g[i] + 0.5f) * std::exp2(-static_cast<float>(i % octaves));
    m.optimizer().step(test::vectors{g});
    for (std::size_t i = 0; i < count; ++i) reference::of(slow)(exact[i], double{g[i]}, step);
  }
  double apart = 0, travelled = 0;
  auto const p = m.parameter(0);
  for (std::size_t i = 0; i < count; ++i) {
    apart += std::pow(double{p[i]} - exact[i].p, 2);
    travelled += std::pow(exact[i].p - 0.5, 2);
  }
  return std::sqrt(apart / travelled);
}

TEST(step, eight_bit_states_arrive_near_the_reference) {
  EXPECT_LT(distance_travelled_apart<memfit::fp32>(8), 1e-4);
  EXPECT_LT(distance_travelled_apart<memfit::dynamic8>(8), 0.15);
  EXPECT_LT(distance_travelled_apart<memfit::float8>(8), 0.10);
  EXPECT_LT(distance_travelled_apart<memfit::float8>(12), 0.10);
  EXPECT_GT(distance_travelled_apart<memfit::linear8>(8), 0.30) << "the control is no control";
}

}  // namespace
