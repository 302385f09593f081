// The optimizer refuses what does not fit, names the tensor and the sizes, and has changed nothing
// by then. At construction, at registration, at the step, and for every hyper-parameter of every
// rule.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "optimizer/model.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::tensor_ref;
using optimizer8 = memfit::optimizer<memfit::adamw, memfit::float8>;
using refs = std::vector<tensor_ref<float>>;

constexpr memfit::adamw rule{.lr = 0.01, .weight_decay = 0.1};

class construction : public testing::Test {
 protected:
  test::guarded<float> a{10}, b{20};
  memfit::host exec{1};

  void refuses(refs const& tensors, std::initializer_list<std::string_view> parts) {
    auto const before = std::pair{a.snapshot(), b.snapshot()};
    test::expect_refusal<memfit::argument_error>([&] { optimizer8(exec, rule, tensors); }, parts);
    optimizer8 empty(exec, rule, refs{});
    test::expect_refusal<memfit::argument_error>(
        [&] {
          for (auto const& t : tensors) empty.add(t);
        },
        parts);
    EXPECT_EQ(before, (std::pair{a.snapshot(), b.snapshot()}));
  }
};

TEST_F(construction, null_data_with_elements) {
  refuses({{nullptr, 10, "wte"}}, {"memfit::optimizer", "wte", "10"});
  refuses({a.ref("wte"), {nullptr, 3, "wpe"}}, {"memfit::optimizer", "wpe", "3"});
}

TEST_F(construction, negative_counts) {
  refuses({{a.data(), -5, "wte"}}, {"memfit::optimizer", "wte", "-5"});
}

TEST_F(construction, one_name_twice) {
  refuses({a.ref("wte"), b.ref("wte")}, {"memfit::optimizer", "wte"});
}

TEST_F(construction, overlapping_parameters) {
  refuses({b.ref("wte"), {b.data() + 19, 1, "wpe"}}, {"memfit::optimizer", "wpe", "1", "overlap"});
  refuses({{b.data() + 5, 1, "wpe"}, b.ref("wte")}, {"memfit::optimizer", "wte", "20", "overlap"});
  refuses({b.ref("wte"), b.ref("lm_head")}, {"memfit::optimizer", "lm_head", "20", "overlap"});
}

TEST_F(construction, neighbours_and_empty_tensors_are_welcome) {
  optimizer8 opt(exec, rule,
                 refs{{b.data(), 10, "left"},
                      {b.data() + 10, 10, "right"},
                      {nullptr, 0, "none"},
                      {b.data() + 5, 0, "inside"}});
  EXPECT_EQ(opt.describe().tensors.size(), 4u);
}

TEST_F(construction, tensors_without_names_are_told_apart) {
  optimizer8 opt(exec, rule, refs{a.ref(), b.ref()});
  EXPECT_EQ(opt.describe().tensors.size(), 2u);
  test::expect_refusal([&] { opt.step(test::vectors{std::vector<float>(10)}); },
                       {"memfit::optimizer", "1", "2"});
}

TEST_F(construction, a_refused_tensor_leaves_the_others_usable) {
  optimizer8 opt(exec, rule, refs{a.ref("a")});
  test::expect_refusal([&] { opt.add(tensor_ref<float>{a.data() + 9, 5, "b"}); }, {"a", "b"});
  EXPECT_EQ(opt.describe().tensors.size(), 1u);
  EXPECT_EQ(opt.add(b.ref("b")), 1u);
  opt.step(test::vectors{std::vector<float>(10, 1.0f), std::vector<float>(20, 1.0f)});
  EXPECT_EQ(opt.steps_sync(1), 1);
}

class stepping : public testing::Test {
 protected:
  test::model<memfit::adamw, memfit::float8> m{
      memfit::host{2},
      rule,
      {test::make_input(test::kind::normal, 300, 1), test::make_input(test::kind::normal, 5, 2)}};
  std::vector<float> g0 = test::make_input(test::kind::normal, 300, 3),
                     g1 = test::make_input(test::kind::normal, 5, 4);

  void SetUp() override { m.optimizer().step(refs{ref(g0), ref(g1)}); }

  static tensor_ref<float> ref(std::vector<float>& v) {
    return {v.data(), static_cast<std::int64_t>(v.size())};
  }
  void refuses(refs const& gradients, std::initializer_list<std::string_view> parts) {
    auto const before = m.bytes();
    test::expect_refusal<memfit::argument_error>([&] { m.optimizer().step(gradients); }, parts);
    EXPECT_EQ(m.bytes(), before);
  }
};

TEST_F(stepping, another_number_of_gradients) {
  refuses({}, {"memfit::optimizer", "0", "2"});
  refuses({ref(g0)}, {"memfit::optimizer", "1", "2"});
  refuses({ref(g0), ref(g1), ref(g1)}, {"memfit::optimizer", "3", "2"});
}

TEST_F(stepping, a_gradient_of_another_count) {
  refuses({ref(g0), {g0.data(), 4}}, {"memfit::optimizer", "t1", "4", "5"});
  refuses({{g0.data(), 299}, ref(g1)}, {"memfit::optimizer", "t0", "299", "300"});
  refuses({ref(g0), {g0.data(), 0}}, {"memfit::optimizer", "t1", "0", "5"});
  refuses({{g0.data(), -1}, ref(g1)}, {"memfit::optimizer", "t0", "-1"});
}

TEST_F(stepping, a_null_gradient_with_elements) {
  refuses({ref(g0), {nullptr, 5}}, {"memfit::optimizer", "t1", "5"});
}

TEST_F(stepping, a_gradient_that_overlaps_a_parameter) {
  refuses({{m.tensor(0).data(), 300}, ref(g1)}, {"memfit::optimizer", "t0"});
  refuses({ref(g0), {m.tensor(0).data() + 295, 5}}, {"memfit::optimizer", "t1", "5"});
  refuses({ref(g0), {m.tensor(1).data() - 4, 5}}, {"memfit::optimizer", "t1"});
}

TEST_F(stepping, gradients_may_share_memory_with_each_other) {
  m.optimizer().step(refs{ref(g0), {g0.data(), 5}});
  EXPECT_EQ(m.optimizer().steps_sync(1), 2);
}

TEST_F(stepping, one_tensor) {
  auto const before = m.bytes();
  for (std::size_t index : {2u, 1000u})
    test::expect_refusal<memfit::argument_error>([&] { m.optimizer().step_one(index, ref(g0)); },
                                                 {"memfit::optimizer", std::to_string(index)});
  test::expect_refusal<memfit::argument_error>([&] { m.optimizer().step_one(1, ref(g0)); },
                                               {"memfit::optimizer", "t1", "300", "5"});
  test::expect_refusal<memfit::argument_error>(
      [&] { m.optimizer().step_one(1, tensor_ref<float>(nullptr, 5)); },
      {"memfit::optimizer", "t1", "5"});
  test::expect_refusal<memfit::argument_error>(
      [&] { m.optimizer().step_one(0, tensor_ref<float>(m.tensor(0).data(), 300)); },
      {"memfit::optimizer", "t0"});
  EXPECT_EQ(m.bytes(), before);
}

TEST_F(stepping, moments_that_do_not_exist) {
  for (auto [index, slot] : {std::pair<std::size_t, int>{2, 0}, {0, 2}, {0, -1}})
    test::expect_refusal([&] { m.optimizer().moment_sync(index, slot); }, {"memfit::optimizer"});
  test::expect_refusal([&] { m.optimizer().steps_sync(2); }, {"memfit::optimizer", "2"});
}

/// Every way for one double field to be wrong, at construction and between steps.
template <class Rule>
void refuses_field(double Rule::*field, std::string const& name, std::vector<double> bad = {}) {
  for (double x : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL, -1e-3})
    bad.push_back(x);
  test::vectors const start{{1.0f, 2.0f}};
  for (double x : bad) {
    Rule wrong{};
    wrong.*field = x;
    using model = test::model<Rule, memfit::fp32>;
    test::expect_refusal<memfit::hyperparameter_error>(
        [&] { model(memfit::host{1}, wrong, start); }, {"memfit::optimizer", name});
    model m(memfit::host{1}, Rule{}, start);
    m.optimizer().step(start);
    auto const before = m.bytes();
    m.optimizer().rule().*field = x;
    test::expect_refusal<memfit::hyperparameter_error>([&] { m.optimizer().step(start); },
                                                       {"memfit::optimizer", name});
    test::expect_refusal<memfit::hyperparameter_error>([&] { m.optimizer().step_one(0, start[0]); },
                                                       {"memfit::optimizer", name});
    EXPECT_EQ(m.bytes(), before) << name << " = " << x;
  }
}

TEST(hyperparameters, of_sgd) {
  refuses_field(&memfit::sgd::lr, "lr");
  refuses_field(&memfit::sgd::weight_decay, "weight_decay");
}
TEST(hyperparameters, of_momentum) {
  refuses_field(&memfit::momentum::lr, "lr");
  refuses_field(&memfit::momentum::momentum, "momentum");
  refuses_field(&memfit::momentum::dampening, "dampening");
  refuses_field(&memfit::momentum::weight_decay, "weight_decay");
}
template <class Adaptive>
void refuses_adaptive_fields() {
  refuses_field(&Adaptive::lr, "lr");
  refuses_field(&Adaptive::beta1, "beta1", {1.0, 1.1});
  refuses_field(&Adaptive::beta2, "beta2", {1.0, 1.1});
  refuses_field(&Adaptive::eps, "eps");
  refuses_field(&Adaptive::weight_decay, "weight_decay");
}
TEST(hyperparameters, of_adam) {
  refuses_adaptive_fields<memfit::adam>();
}
TEST(hyperparameters, of_adamw) {
  refuses_adaptive_fields<memfit::adamw>();
}

TEST(hyperparameters, beyond_fp32_do_no_harm) {
  for (double lr : {1e39, 1e300}) {
    test::model<memfit::sgd, memfit::fp32> m(memfit::host{1}, {}, {{1.0f, -1.0f}});
    m.optimizer().rule().lr = lr;
    try {
      m.optimizer().step(test::vectors{{1.0f, 0.0f}});
    } catch (memfit::hyperparameter_error const&) {
    }
    for (float p : m.parameter(0)) EXPECT_TRUE(std::isfinite(p)) << lr;
  }
}

}  // namespace
