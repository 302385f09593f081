// Groups of hyper-parameters, frozen tensors, tensors added later: against the reference, with each
// tensor's own rule and step number.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "memfit/optimizer.hpp"
#include "support/inputs.hpp"
#include "support/plain_executor.hpp"
#include "support/reference_of.hpp"
#include "support/refusal.hpp"
#include "support/tracked.hpp"

namespace {

using reference::tracked;
using refs = std::vector<memfit::tensor_ref<float>>;
using vectors = std::vector<std::vector<float>>;

std::vector<float> input(std::uint64_t seed, std::int64_t n = 40) {
  return test::make_input(test::kind::normal, n, seed);
}

/// Tensors of 40 elements by name, and the reference beside them, which starts every step from what
/// memfit holds.
template <class Rule>
class stepped {
 public:
  using optimizer = memfit::optimizer<Rule, memfit::fp32>;
  static constexpr int slots = memfit::slot_count<Rule>;

  explicit stepped(Rule const& rule) : opt(test::plain_executor{}, rule) {}

  void add(std::string name) {
    values_.push_back(input(values_.size() + 1));
    names_.push_back(std::move(name));
    steps_.push_back(0);
    opt.add(memfit::tensor_ref<float>{values_.back().data(), 40, names_.back()});
  }

  /// One step with fresh gradients; `present` says whether a tensor takes part, and by which rule.
  template <class RuleOf>
  void step(RuleOf const& rule_of) {
    ++number_;
    vectors gradients, moments[3];
    for (std::size_t i = 0; i < values_.size(); ++i) {
      gradients.push_back(input(100 * number_ + i));
      for (int s = 0; s < slots; ++s) moments[s].push_back(opt.moment_sync(i, s));
    }
    auto const before = values_;
    opt.step(gradients);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      Rule const* const rule = rule_of(i);
      steps_[i] += rule != nullptr ? 1 : 0;
      EXPECT_EQ(opt.steps_sync(i), steps_[i]) << names_[i];
      for (std::size_t k = 0; k < before[i].size(); ++k) {
        reference::element<tracked> e{tracked::stored(before[i][k]), {}};
        for (int s = 0; s < slots; ++s)
          e.s[static_cast<std::size_t>(s)] = tracked::stored(moments[s][i][k]);
        if (rule != nullptr) reference::of (*rule)(e, tracked::stored(gradients[i][k]), steps_[i]);
        ASSERT_LE(std::fabs(double{values_[i][k]} - e.p.value), 2 * e.p.bound)
            << names_[i] << " in step " << number_ << ", expected " << e.p.value;
      }
    }
  }
  /// The same by the rules of the optimizer's groups.
  void step() {
    step([&](std::size_t i) { return opt.is_frozen(i) ? nullptr : &opt.rule(opt.group_of(i)); });
  }

  std::vector<float> const& parameter(std::size_t i) const { return values_[i]; }

  optimizer opt;

 private:
  // Moving the vector of vectors leaves their elements in place.
  vectors values_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> steps_;
  std::uint64_t number_ = 0;
};

struct group : testing::Test {
  stepped<memfit::adamw> m{memfit::adamw{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.9}};
  void SetUp() override {
    for (auto name : {"wte", "h.0.ln.bias", "h.0.weight"}) m.add(name);
  }
  std::vector<std::size_t> of_all() const {
    std::vector<std::size_t> groups;
    for (std::size_t i = 0; i < m.opt.size(); ++i) groups.push_back(m.opt.group_of(i));
    return groups;
  }
  using numbers = std::vector<std::size_t>;
};

TEST_F(group, starts_as_group_0_and_change_leave_it) {
  m.opt.rule().lr = 0.5;
  auto const no_decay = m.opt.add_group({"*bias", "ln*"}, [](auto& r) { r.weight_decay = 0; });
  EXPECT_EQ(no_decay, 1u);
  EXPECT_EQ(m.opt.groups(), 2u);
  EXPECT_EQ(m.opt.rule(no_decay).lr, 0.5);
  EXPECT_EQ(m.opt.rule(no_decay).weight_decay, 0);
  EXPECT_EQ(m.opt.rule().weight_decay, 1e-2);
  EXPECT_EQ(of_all(), (numbers{0, 1, 0}));
}

TEST_F(group, the_latest_that_fits_has_a_tensor_and_later_tensors_join_by_name) {
  m.opt.add_group({"h.*"}, [](auto&) {});
  m.opt.add_group({"*.ln.*"}, [](auto&) {});
  EXPECT_EQ(of_all(), (numbers{0, 2, 1}));
  m.add("h.1.ln.weight");
  m.add("h.1.bias");
  m.add("");
  EXPECT_EQ(of_all(), (numbers{0, 2, 1, 2, 1, 0}));
}

TEST_F(group, follow_their_own_rules_with_late_tensors_and_gaps) {
  m.step();
  m.opt.rule().beta1 = 0.6;
  auto const biases = m.opt.add_group({"*bias"}, [](auto& r) { r.lr *= 3; });
  m.add("late");
  m.add("late.bias");
  m.step();
  m.opt.rule(biases).weight_decay = 0.3;
  m.opt.freeze("wte");
  m.step();
  m.opt.rule().weight_decay = 0;
  m.step();
  m.opt.unfreeze("wte");
  m.step();
}

TEST_F(group, takes_tensors_by_hand_until_a_later_pattern_fits) {
  auto const by_hand = m.opt.add_group({}, [](auto& r) { r.lr = 1; });
  m.opt.set_group(1, by_hand);
  m.opt.set_group(2, by_hand);
  EXPECT_EQ(of_all(), (numbers{0, 1, 1}));
  m.step();
  m.opt.add_group({"*bias"}, [](auto&) {});
  m.opt.set_group(2, 0);
  EXPECT_EQ(of_all(), (numbers{0, 2, 0}));
  m.step();
}

TEST_F(group, schedulers_scale_all_of_them) {
  auto const quick = m.opt.add_group({"h*"}, [](auto& r) { r.lr *= 10; });
  auto const scale = [&](double factor) {
    for (std::size_t g = 0; g < m.opt.groups(); ++g) m.opt.rule(g).lr *= factor;
  };
  scale(0.5);
  scale(0.5);
  EXPECT_DOUBLE_EQ(m.opt.rule(quick).lr, 10 * m.opt.rule().lr);
  EXPECT_DOUBLE_EQ(m.opt.rule().lr, 0.0025);
  m.step();
}

TEST_F(group, a_reference_to_its_rule_outlives_later_groups_and_moves) {
  auto& rule = m.opt.rule();
  for (int i = 0; i < 100; ++i) m.opt.add_group({}, [](auto&) {});
  auto moved = std::move(m.opt);
  rule.lr = 0.125;
  EXPECT_EQ(moved.rule().lr, 0.125);
  EXPECT_EQ(moved.groups(), 101u);
}

TEST_F(group, refuses_what_does_not_fit_and_changes_nothing) {
  m.opt.add_group({"wte"}, [](auto&) {});
  auto const before = m.opt.describe().text();
  test::expect_refusal<memfit::hyperparameter_error>(
      [&] { m.opt.add_group({"h*"}, [](auto& r) { r.beta2 = 1; }); },
      {"optimizer::add_group", "beta2", "group 2"});
  test::expect_refusal<memfit::argument_error>([&] { m.opt.set_group(0, 2); },
                                               {"optimizer::set_group", "group 2 of 2"});
  test::expect_refusal<memfit::argument_error>([&] { m.opt.set_group(3, 1); },
                                               {"optimizer::set_group", "tensor 3 of 3"});
  test::expect_refusal<memfit::argument_error>([&] { m.opt.rule(2); },
                                               {"optimizer::rule", "group 2 of 2"});
  test::expect_refusal<memfit::argument_error>([&] { (void)m.opt.group_of(3); },
                                               {"optimizer::group_of", "tensor 3 of 3"});
  EXPECT_EQ(m.opt.groups(), 2u);
  EXPECT_EQ(m.opt.describe().text(), before);
}

TEST_F(group, a_step_names_the_one_with_a_wrong_hyperparameter) {
  m.opt.add_group({"wte"}, [](auto&) {});
  m.opt.rule(1).lr = std::numeric_limits<double>::infinity();
  auto const parameter = m.parameter(2);
  vectors const g(3, input(9));
  test::expect_refusal<memfit::hyperparameter_error>([&] { m.opt.step(g); },
                                                     {"optimizer::step", "lr", "group 1"});
  test::expect_refusal<memfit::hyperparameter_error>([&] { m.opt.step_one(2, g[2]); },
                                                     {"optimizer::step_one", "lr", "group 1"});
  EXPECT_EQ(m.parameter(2), parameter);
  EXPECT_EQ(m.opt.steps_sync(2), 0);
}

TEST_F(group, rules_that_the_executor_reads_are_one_for_each) {
  m.opt.add_group({"*bias"}, [](auto&) {});
  std::vector<memfit::adamw> there{{.lr = 0.1}, {.lr = 0.2, .weight_decay = 0}};
  m.opt.rule_from(there.data());
  m.step([&](std::size_t i) { return &there[i == 1 ? 1 : 0]; });
  there[1].lr = 0.5;
  m.step([&](std::size_t i) { return &there[i == 1 ? 1 : 0]; });
}

TEST_F(group, and_what_is_frozen_move_to_another_executor) {
  m.opt.add_group({"*bias"}, [](auto& r) { r.lr = 0.5; });
  auto const by_hand = m.opt.add_group({}, [](auto& r) { r.weight_decay = 0; });
  m.opt.set_group(0, by_hand);
  m.opt.freeze(2);
  m.step();
  vectors copies{m.parameter(0), m.parameter(1), m.parameter(2), input(50)};
  refs there;
  auto const here = m.opt.describe();  // has the names
  for (auto const& t : here.tensors) there.push_back({copies[there.size()].data(), 40, t.name});
  auto moved = m.opt.to(test::plain_executor{}, there);
  moved.add(memfit::tensor_ref<float>{copies[3].data(), 40, "h.1.bias"});
  EXPECT_EQ(moved.group_of(0), 2u);
  EXPECT_EQ(moved.group_of(1), 1u);
  EXPECT_EQ(moved.group_of(3), 1u);
  EXPECT_EQ(moved.rule(1).lr, 0.5);
  EXPECT_EQ(moved.rule(2).weight_decay, 0);
  EXPECT_TRUE(moved.is_frozen(2));
  EXPECT_FALSE(moved.is_frozen(0));
}

TEST_F(group, and_what_is_frozen_are_told) {
  auto const plain = m.opt.describe().text();
  m.opt.add_group({"wte"}, [](auto&) {});
  m.opt.freeze("h.0.weight");
  auto const d = m.opt.describe();
  EXPECT_EQ(d.tensors[0].group, 1u);
  EXPECT_EQ(d.tensors[1].group, 0u);
  EXPECT_TRUE(d.tensors[2].frozen);
  EXPECT_FALSE(d.tensors[0].frozen);
  for (auto part : {"group 1", "frozen"}) {
    EXPECT_EQ(plain.find(part), plain.npos) << part;
    EXPECT_NE(d.text().find(part), plain.npos) << part << " is not in:\n" << d.text();
  }
}

struct freezing : group {};

TEST_F(freezing, leaves_everything_as_it_was_whatever_comes_as_gradient) {
  m.step();
  auto const parameter = m.parameter(1), first = m.opt.moment_sync(1, 0);
  m.opt.freeze(1);
  auto g = input(5);
  auto const view = [&](std::int64_t n) { return memfit::tensor_ref<float>{g.data(), n}; };
  float* const own = const_cast<float*>(parameter.data());
  for (auto const& odd :
       {memfit::tensor_ref<float>{}, view(40), view(7), view(-1),
        memfit::tensor_ref<float>{nullptr, 40}, memfit::tensor_ref<float>{own, 40}}) {
    m.opt.step(refs{view(40), odd, view(40)});
    m.opt.step_one(1, odd);
  }
  EXPECT_EQ(m.parameter(1), parameter);
  EXPECT_EQ(m.opt.moment_sync(1, 0), first);
  EXPECT_EQ(m.opt.steps_sync(1), 1);
  EXPECT_EQ(m.opt.steps_sync(0), 7);
  m.opt.unfreeze(1);
  test::expect_refusal<memfit::argument_error>([&] { m.opt.step_one(1, view(7)); },
                                               {"h.0.ln.bias"});
  m.opt.step_one(1, view(40));
  EXPECT_EQ(m.opt.steps_sync(1), 2);
}

TEST_F(freezing, stops_the_counter_of_an_empty_tensor) {
  m.opt.add(memfit::tensor_ref<float>{nullptr, 0, "none"});
  m.opt.freeze("none");
  vectors const g{input(1), input(2), input(3), {}};
  m.opt.step(g);
  EXPECT_EQ(m.opt.steps_sync(3), 0);
  m.opt.unfreeze("none");
  m.opt.step(g);
  EXPECT_EQ(m.opt.steps_sync(3), 1);
}

TEST_F(freezing, takes_patterns_and_refuses_those_that_fit_none) {
  m.opt.freeze("h.*");
  EXPECT_TRUE(m.opt.is_frozen(1) && m.opt.is_frozen(2));
  EXPECT_FALSE(m.opt.is_frozen(0));
  m.step();
  m.opt.unfreeze("*.weight");
  EXPECT_TRUE(m.opt.is_frozen(1));
  m.step();
  test::expect_refusal<memfit::argument_error>([&] { m.opt.freeze("wtee"); },
                                               {"optimizer::freeze", "wtee", "3"});
  test::expect_refusal<memfit::argument_error>([&] { m.opt.unfreeze("wpe*"); },
                                               {"optimizer::unfreeze", "wpe*"});
  test::expect_refusal<memfit::argument_error>([&] { m.opt.freeze(3); },
                                               {"optimizer::freeze", "tensor 3 of 3"});
  test::expect_refusal<memfit::argument_error>([&] { (void)m.opt.is_frozen(3); },
                                               {"optimizer::is_frozen", "tensor 3 of 3"});
}

TEST_F(freezing, a_group_chosen_meanwhile_counts_afterwards) {
  m.opt.freeze(0);
  m.opt.add_group({"wte"}, [](auto& r) { r.lr = 1; });
  m.step();
  m.opt.unfreeze(0);
  m.step();
}

/// In an executor that has room for so many allocations more.
TEST(kept_in_fp32, widening_several_tensors_happens_to_all_or_none) {
  test::plain_executor const exec;
  vectors values(3, input(1, 300));
  memfit::optimizer<memfit::adamw, memfit::float8> opt(exec, {},
                                                       refs{{values[0].data(), 300, "wte"},
                                                            {values[1].data(), 300, "wpe"},
                                                            {values[2].data(), 300, "head"}},
                                                       {.min_quantized = 1});
  auto const before = opt.describe().text();
  for (int room = 0; room < 4; ++room) {
    exec.memory().allocations_left = room;
    test::expect_refusal<memfit::memory_error>(
        [&] { opt.keep_fp32("w*"); },
        {"optimizer::keep_fp32", room < 2 ? "'wte'" : "'wpe'", "300"});
    EXPECT_EQ(opt.describe().text(), before);
  }
  exec.memory().allocations_left = 100;
  auto more = input(2, 300);
  opt.add(memfit::tensor_ref<float>{more.data(), 300, "wxe"});
  EXPECT_TRUE(opt.describe().tensors[3].quantized) << "a refused pattern is forgotten";
  opt.keep_fp32("w?e");
  auto const d = opt.describe();
  for (std::size_t i : {0u, 1u, 3u}) EXPECT_FALSE(d.tensors[i].quantized) << i;
  EXPECT_TRUE(d.tensors[2].quantized);
  auto last = input(3, 300);
  opt.add(memfit::tensor_ref<float>{last.data(), 300, "wye"});
  EXPECT_FALSE(opt.describe().tensors[4].quantized);
}

}  // namespace
