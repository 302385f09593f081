// Optimizers chosen by name: every rule follows its reference through the common face while its
// hyper-parameters change by name; names that nothing has are refused with those there are.
#include "memfit/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/inputs.hpp"
#include "support/plain_executor.hpp"
#include "support/reference_of.hpp"
#include "support/refusal.hpp"
#include "support/tracked.hpp"

namespace {

using namespace memfit;
using reference::tracked;
using tensor = std::vector<reference::element<tracked>>;
using vectors = std::vector<std::vector<float>>;

template <class Rules>
struct references;
/// The reference of every rule by its name, with hyper-parameters by theirs.
template <class... Rules>
struct references<rules<Rules...>> {
  using step = void (*)(hyperparameter_values const&, tensor&, std::vector<tracked> const&,
                        std::int64_t);
  static step of(std::string const& name) {
    step found = nullptr;
    ((name == name_of<Rules>::value() ? void(found = &take<Rules>) : void()), ...);
    return found;
  }

 private:
  template <class Rule>
  static void take(hyperparameter_values const& values, tensor& t, std::vector<tracked> const& g,
                   std::int64_t n) {
    Rule r;
    detail::change("reference", r, values);
    reference::take_step(reference::of(r), t, g, n);
  }
};

using all_rules = rules<sgd, momentum, adam, adamw, amsgrad, amsgradw, nadam, radam, ademamix,
                        rmsprop, adagrad, lion, signum, lamb, lars>;
using all = registry<all_rules>;

/// Every hyper-parameter of a group another one, within its range.
void change(any_optimizer& opt, std::size_t group) {
  for (auto const& [name, x] : opt.hyperparameters(group)) {
    bool const is_whole = name.ends_with("warmup");
    if (name == "nesterov")
      opt.set(name, 1 - x, group);
    else
      opt.set(name, is_whole ? x + 2 : name.starts_with("beta") ? 0.9 * x : x / 2 + 0.01, group);
  }
}

struct by_name : testing::TestWithParam<std::string> {
  std::vector<float> input(std::uint64_t number) {
    return test::make_input(test::kind::normal, 40, number);
  }
  /// A step of both; each tensor by the rule of its group and by its own number.
  void step() {
    vectors gradients, before = values, moments[3];
    for (std::size_t i = 0; i < opt->size(); ++i) {
      gradients.push_back(input(100 * ++seed));
      for (std::size_t s = 0; s < slots; ++s)
        moments[s].push_back(opt->moment_sync(i, static_cast<int>(s)));
    }
    opt->step(gradients);
    for (std::size_t i = 0; i < opt->size(); ++i) {
      numbers[i] += opt->is_frozen(i) ? 0 : 1;
      ASSERT_EQ(opt->steps_sync(i), numbers[i]);
      auto const rule = opt->hyperparameters(opt->group_of(i));
      tensor expected;
      std::vector<tracked> g;
      for (std::size_t k = 0; k < before[i].size(); ++k) {
        auto& e = expected.emplace_back();
        e.p = tracked::stored(before[i][k]);
        for (std::size_t s = 0; s < slots; ++s) e.s[s] = tracked::stored(moments[s][i][k]);
        g.push_back(tracked::stored(gradients[i][k]));
      }
      if (!opt->is_frozen(i)) reference_step(rule, expected, g, numbers[i]);
      for (std::size_t k = 0; k < before[i].size(); ++k) {
        auto const& p = expected[k].p;
        ASSERT_LE(std::fabs(double{values[i][k]} - p.value), 2 * p.bound)
            << "tensor " << i << " at its step " << numbers[i] << ", expected " << p.value;
      }
    }
  }
  void add() {
    auto const i = numbers.size();
    numbers.push_back(0);
    opt->add(tensor_ref<float>{values[i].data(), 40, names[i]});
  }

  vectors values{input(1), input(2), input(3), input(4)};
  std::array<char const*, 4> names{"w", "bias", "late", "late.bias"};
  std::vector<std::int64_t> numbers;
  std::uint64_t seed = 0;
  owner<any_optimizer> opt =
      make<all>(GetParam(), "fp32", test::plain_executor{}, {}, std::vector<tensor_ref<float>>{});
  references<all_rules>::step reference_step = references<all_rules>::of(GetParam());
  std::size_t slots = opt->slot_names().size();
};

TEST_P(by_name, follows_changes_groups_gaps_and_late_tensors) {
  ASSERT_EQ(opt->rule_name(), GetParam());
  add();
  add();
  step();
  change(*opt, 0);
  step();
  auto const biases = opt->add_group({"*bias"}, {{"lr", 0.03}, {"weight_decay", 0.3}});
  add();
  add();
  step();
  change(*opt, biases);
  opt->freeze("w");
  step();
  opt->set("weight_decay", 0);
  step();
  opt->unfreeze("w");
  step();
}

INSTANTIATE_TEST_SUITE_P(rules, by_name, testing::ValuesIn(all::rule_names()),
                         [](auto const& rule) { return rule.param; });

struct user_rule {
  double lr = 0.5;
  static constexpr char const* name = "user_rule";
  static constexpr std::array<slot, 0> slots{};
  struct constants {
    float lr;
    void operator()(float& p, float g) const { p -= lr * g; }
  };
  constants at(std::int64_t) const { return {static_cast<float>(lr)}; }
};

using few = registry<rules<adamw, user_rule>, formats<float8, blocked<float8, 64>>,
                     columns<fp32, split<bf16>>>;

struct registered : testing::Test {
  std::vector<float> w = std::vector<float>(5000, 1.0f);
  std::vector<tensor_ref<float>> const model{{w.data(), 5000, "w"}};
  test::plain_executor exec;

  auto of_few(char const* rule, char const* format, hyperparameter_values const& values = {}) {
    return make<few>(rule, format, "fp32", exec, values, model);
  }
};

TEST_F(registered, has_the_chosen_format_and_column) {
  auto const opt = of_few("adamw", "blocked<float8, 64>", {{"lr", 0.5}, {"eps", 1e-3}});
  EXPECT_EQ(opt->format_name(), "blocked<float8, 64>");
  EXPECT_EQ(opt->column_name(), "fp32");
  EXPECT_EQ(opt->describe().state_bytes, 2 * (5000 + 4 * 79));
  EXPECT_EQ(opt->get("lr"), 0.5);
  EXPECT_EQ(opt->get("eps"), 1e-3);
  EXPECT_EQ(opt->get("beta1"), 0.9);
  std::vector<bf16> narrow(5000);
  auto const split = make<few>("adamw", "float8", "split<bf16>", exec, {},
                               std::vector<tensor_ref<bf16>>{{narrow.data(), 5000, "w"}});
  EXPECT_EQ(split->describe().kept_bytes, 2 * 5000);
  test::expect_refusal<argument_error>([&] { split->add(model[0]); },
                                       {"any_optimizer::add", "'w'", "fp32", "bf16"});
}

TEST_F(registered, refuses_names_that_it_has_not_with_those_it_has) {
  test::expect_refusal<argument_error>([&] { of_few("adam", "float8"); },
                                       {"make", "rule 'adam'", "adamw, user_rule"});
  test::expect_refusal<argument_error>([&] { of_few("adamw", "float4"); },
                                       {"make", "format 'float4'", "float8, blocked<float8, 64>"});
  test::expect_refusal<argument_error>(
      [&] { make<few>("adamw", "float8", "bf16", exec, {}, model); },
      {"make", "column 'bf16'", "fp32, split<bf16>"});
  test::expect_refusal<argument_error>([&] { make<few>("adamw", "float8", exec, {}, model); },
                                       {"make", "column", "fp32, split<bf16>"});
  test::expect_refusal<argument_error>(
      [&] {
        of_few("adamw", "float8", {{"lr", 1}, {"momentum", 0.9}});
      },
      {"make", "adamw", "'momentum'", "lr, beta1, beta2, eps, weight_decay"});
  using twice = registry<rules<adamw, user_rule, adamw>>;
  test::expect_refusal<argument_error>([&] { make<twice>("adamw", "fp32", exec, {}, model); },
                                       {"make", "two rules", "adamw"});
}

TEST_F(registered, refuses_values_and_changes_nothing) {
  auto const opt = of_few("adamw", "float8");
  test::expect_refusal<hyperparameter_error>(
      [&] {
        of_few("adamw", "float8", {{"beta1", 1}});
      },
      {"optimizer", "beta1"});
  test::expect_refusal<argument_error>([&] { (void)opt->get("momentum"); },
                                       {"any_optimizer::get", "'momentum'", "weight_decay"});
  test::expect_refusal<argument_error>([&] { opt->set("momentum", 1); },
                                       {"any_optimizer::set", "'momentum'", "weight_decay"});
  test::expect_refusal<argument_error>([&] { opt->set("lr", 1, 1); }, {"group 1 of 1"});
  test::expect_refusal<argument_error>(
      [&] {
        opt->add_group({"w"}, {{"lr", 1}, {"x", 1}});
      },
      {"any_optimizer::add_group", "'x'"});
  EXPECT_EQ(opt->groups(), 1u);
  auto const nesterov = make<all>("momentum", "fp32", exec, {}, model);
  test::expect_refusal<hyperparameter_error>([&] { nesterov->set("nesterov", 0.5); },
                                             {"any_optimizer::set", "nesterov", "momentum", "0.5"});
  EXPECT_EQ(nesterov->get("nesterov"), 0);
}

TEST_F(registered, a_rule_that_lists_nothing_steps_and_is_told_how_to_list) {
  auto const opt = of_few("user_rule", "float8");
  EXPECT_EQ(opt->format_name(), "fp32") << "there are no moments";
  opt->step_one(0, std::vector<float>(5000, 1.0f));
  EXPECT_EQ(w[4999], 0.5f);
  EXPECT_TRUE(opt->hyperparameters().empty());
  for (auto const& call :
       std::vector<std::function<void()>>{[&] { opt->set("lr", 1); }, [&] { (void)opt->get("lr"); },
                                          [&] {
                                            of_few("user_rule", "float8", {{"lr", 1}});
                                          }})
    test::expect_refusal<argument_error>(call, {"user_rule", "hyperparameter_list"});
}

TEST_F(registered, has_the_optimizers_own_policy) {
  auto const opt = of_few("adamw", "float8");
  auto more = w;
  EXPECT_EQ(opt->add(tensor_ref<float>{more.data(), 5000, "more"}), 1u);
  opt->keep_fp32("m*");
  EXPECT_TRUE(opt->describe().tensors[0].quantized);
  EXPECT_FALSE(opt->describe().tensors[1].quantized);
  auto const group = opt->add_group({}, {{"lr", 7}});
  opt->set_group(0, group);
  EXPECT_EQ(opt->group_of(0), 1u);
  EXPECT_EQ(opt->get("lr", opt->group_of(0)), 7);
  opt->freeze(0);
  EXPECT_TRUE(opt->is_frozen(0));
  opt->unfreeze("w");
  EXPECT_FALSE(opt->is_frozen(0));
  EXPECT_EQ(opt->nonfinite_sync(), 0u);
}

/// They are all doubles, so that none can be left out unseen.
template <class Rule>
void lists_all_of_its_doubles() {
  Rule r;
  std::set<std::string_view> names;
  std::set<double> values;
  double next = 1;
  for (auto const& h : r.hyperparameters()) {
    EXPECT_TRUE(h.set(next++));
    names.insert(h.name());
  }
  for (auto const& h : r.hyperparameters()) values.insert(h.get());
  EXPECT_EQ(names.size(), sizeof(Rule) / sizeof(double));
  EXPECT_EQ(values.size(), names.size());
}
TEST(registry, layerwise_rules_list_all_hyperparameters) {
  lists_all_of_its_doubles<lamb>();
  lists_all_of_its_doubles<lars>();
}

}  // namespace
