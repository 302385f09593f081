// The planner: what it returns fits, is ordered and true to the estimate; what it refuses.
#include "memfit/fit/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "memfit/codec/root.hpp"
#include "memfit/cost.hpp"
#include "memfit/fit/transformer.hpp"
#include "memfit/rule/adaptive.hpp"
#include "memfit/rule/momentum.hpp"

namespace {

using namespace memfit;
using fit::precision;

/// Blocks of one matrix whose activations may be kept in two ways, as large per token as a
/// transformer's.
fit::model blocks(std::int64_t count, std::int64_t channels) {
  fit::model m;
  m.name = "blocks";
  for (std::int64_t i = 0; i < count; ++i)
    m.stages.push_back({"block " + std::to_string(i),
                        {{"w" + std::to_string(i), 12 * channels * channels},
                         {"b" + std::to_string(i), 13 * channels}}});
  m.chain = [=](fit::pass const& p, fit::rates const& r) {
    auto const tokens = p.batch * p.seq;
    auto const row = tokens * channels * p.element_bytes;
    auto const flops = 24.0 * static_cast<double>(tokens * channels * channels);
    auto const forward = static_cast<std::int64_t>(flops / r.flops * 1e9) + 1;
    checkpoint::stage s{.output = row, .gradient = row, .forward = forward, .scratch = 8 * row};
    s.variants = {{16 * row, forward, forward, 2 * forward, 0, 9 * row},
                  {10 * row, forward, forward, 2 * forward + forward / 8, 0, 12 * row}};
    return checkpoint::chain(static_cast<std::size_t>(count), s);
  };
  m.workspace = [](fit::pass const& p) { return 8 * p.batch * p.seq; };
  return m;
}

fit::offers all_techniques() {
  fit::column_choice const exact{cost_of_column<fp32>()};
  fit::column_choice const halves{cost_of_column<corrected<bf16>>(), precision::bits24, 0.003,
                                  "24 bits"};
  fit::state_choice const plain{cost_of<adamw, fp32>()};
  fit::state_choice const coded{cost_of<adamw, root8>(), precision::bits24, 0.003, "8 bits"};
  return {.storages = {{exact, plain}, {exact, coded}, {halves, plain}, {halves, coded}}};
}

fit::wanted wants(std::int64_t batch, precision p = precision::bits24) {
  return {.batch = batch, .seq = 512, .precision = p, .offered = all_techniques()};
}

auto const model = blocks(12, 768);
auto const card = fit::device_named("rtx-3060-12g");

std::int64_t plain_bytes(fit::wanted const& w) {
  return fit::plans(model, card, w).plain.bytes.total();
}

std::string refusal(auto const& call) {
  try {
    call();
  } catch (argument_error const& e) {
    return e.what();
  }
  return "";
}

/// Budgets from where nothing fits to where everything does.
std::vector<std::int64_t> budgets(fit::wanted const& w) {
  std::vector<std::int64_t> all;
  auto const plain = plain_bytes(w);
  for (auto const part : {1, 3, 6, 10, 15, 25, 40, 60, 80, 100, 130})
    all.push_back(plain * part / 100);
  return all;
}

TEST(fit_plan, never_exceeds_its_bytes_by_the_estimate) {
  std::size_t seen = 0;
  for (auto w : {wants(8), wants(48), wants(8, precision::exact), wants(7, precision::bits16)})
    for (auto const bytes : budgets(w)) {
      w.bytes = bytes;
      for (auto const& p : fit::plans(model, card, w).plans) {
        EXPECT_LE(p.bytes.total(), bytes);
        EXPECT_EQ(fit::estimate(model, p.training).total(), p.bytes.total());
        EXPECT_GE(p.precision, w.precision);
        EXPECT_EQ(p.training.batch, w.batch);
        ++seen;
      }
    }
  EXPECT_GT(seen, 100U);
}

TEST(fit_plan, folds_only_where_the_rule_does) {
  auto w = wants(8, precision::bits16);
  w.micro_batch = 2;
  w.offered.fp32_sums = w.offered.bf16_sums = false;
  EXPECT_EQ(fit::plans(model, card, w).plans.at(0).training.accumulation,
            fit::accumulation::folded);
  auto narrow = w;
  for (auto& s : narrow.offered.storages) s.states.cost = cost_of<adamw, root8>();
  narrow.batch = 16;
  EXPECT_EQ(fit::plans(model, card, narrow).plans.at(0).training.accumulation,
            fit::accumulation::folded);
  narrow.batch = 18;
  EXPECT_NE(refusal([&] { fit::plans(model, card, narrow); }).find("fit::plans"), std::string::npos)
      << "nine micro-batches";
  for (auto& s : w.offered.storages) s.states.cost = cost_of<momentum, fp32>();
  EXPECT_NE(refusal([&] { fit::plans(model, card, w); }).find("fit::plans"), std::string::npos);
}

TEST(fit_plan, the_fastest_come_first_and_none_is_covered_by_another) {
  for (auto w : {wants(8), wants(48)})
    for (auto const bytes : budgets(w)) {
      w.bytes = bytes;
      auto const found = fit::plans(model, card, w).plans;
      for (std::size_t i = 0; i < found.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
          EXPECT_LE(found[j].seconds, found[i].seconds);
          EXPECT_TRUE(found[i].precision > found[j].precision || found[i].loss < found[j].loss ||
                      found[i].bytes.total() < found[j].bytes.total());
        }
    }
}

TEST(fit_plan, more_memory_is_never_slower_and_no_reason_to_fold) {
  for (auto w : {wants(8), wants(48), wants(8, precision::exact)}) {
    double before = 1e300;
    std::size_t fitting = 0;
    bool folded = true;
    for (auto const bytes : budgets(w)) {
      w.bytes = bytes;
      auto const found = fit::plans(model, card, w).plans;
      EXPECT_TRUE(!found.empty() || fitting == 0) << bytes;
      if (found.empty()) continue;
      auto const folds = [](fit::plan const& p) {
        return p.training.accumulation == fit::accumulation::folded;
      };
      auto const folding = std::count_if(found.begin(), found.end(), folds);
      EXPECT_TRUE(folding == 0 || folding == std::ssize(found)) << bytes;
      EXPECT_GE(folded, folding != 0) << "first without and then with folding, at " << bytes;
      if (folded == (folding != 0)) {
        EXPECT_LE(found.front().seconds, before) << bytes;
      }
      folded = folding != 0;
      before = found.front().seconds;
      ++fitting;
    }
    EXPECT_GT(fitting, 4U);
  }
}

/// Where stages are small beside what it takes to start one.
TEST(fit_plan, more_memory_is_never_slower_on_a_card_that_waits_for_launches) {
  fit::transformer_shape small{.name = "small"};
  small.layers = 6;
  small.heads = 4;
  small.channels = small.context = 256;
  small.vocabulary = 1000;
  auto const of_small = fit::transformer(small);
  auto w = wants(8, precision::exact);
  w.seq = 256;
  double before = 1e300;
  for (w.bytes = std::int64_t{100} << 20; w.bytes < std::int64_t{400} << 20;
       w.bytes += std::int64_t{4} << 20) {
    auto const found = fit::plans(of_small, fit::device_named("h200"), w).plans;
    if (found.empty()) continue;
    EXPECT_LE(found.front().seconds, before) << w.bytes;
    before = found.front().seconds;
  }
  EXPECT_LT(before, 1);
}

TEST(fit_plan, with_memory_for_everything_nothing_needs_to_change) {
  auto w = wants(8, precision::exact);
  w.bytes = plain_bytes(w);
  auto const found = fit::plans(model, card, w);
  auto const& best = found.plans.front();
  EXPECT_TRUE(best.techniques.empty());
  EXPECT_EQ(best.bytes.total(), found.plain.bytes.total());
  w.bytes -= 1;
  EXPECT_FALSE(fit::plans(model, card, w).plans.front().techniques.empty());
}

TEST(fit_plan, where_nothing_fits_the_missing_bytes_are_named_to_the_byte) {
  for (auto const p : {precision::exact, precision::bits24}) {
    auto w = wants(16, p);
    w.bytes = plain_bytes(w) / 50;
    auto const refused = fit::plans(model, card, w);
    ASSERT_TRUE(refused.plans.empty());
    ASSERT_TRUE(refused.nearest);
    EXPECT_EQ(refused.missing, refused.nearest->bytes.total() - w.bytes);
    w.bytes += refused.missing;
    EXPECT_EQ(fit::plans(model, card, w).plans.size(), 1U);
    w.bytes -= 1;
    EXPECT_TRUE(fit::plans(model, card, w).plans.empty());
  }
}

TEST(fit_plan, each_technique_that_is_taken_away_gives_its_bytes_back) {
  auto w = wants(48);
  w.clips = true;
  std::size_t seen = 0;
  for (auto const bytes : budgets(w)) {
    w.bytes = bytes;
    for (auto const& p : fit::plans(model, card, w).plans) {
      double loss = 0;
      for (auto const& t : p.techniques) {
        loss += t.loss;
        EXPECT_FALSE(t.effect.empty()) << t.name;
        if (t.name != "activation checkpoints") continue;
        auto without = p.training;
        without.schedule = nullptr;
        EXPECT_EQ(t.saves, fit::estimate(model, without).total() - p.bytes.total());
        EXPECT_GT(t.seconds, 0);
        ++seen;
      }
      EXPECT_DOUBLE_EQ(loss, p.loss);
    }
  }
  EXPECT_GT(seen, 0U);
}

TEST(fit_plan, one_schedule_alone_is_explained_by_no_other) {
  auto w = wants(8);
  w.offered.schedule = [](checkpoint::chain const& c) { return checkpoint::every(c, 3); };
  for (auto const bytes : budgets(w)) {
    w.bytes = bytes;
    for (auto const& p : fit::plans(model, card, w).plans) {
      EXPECT_EQ(
          p.bytes.activations,
          checkpoint::every(
              model.chain({p.training.micro_batch, w.seq, p.training.column.element_bytes}, {}), 3)
              .peak);
      for (auto const& t : p.techniques) EXPECT_NE(t.name, "activation checkpoints");
    }
  }
}

TEST(fit_plan, what_is_not_offered_is_not_used) {
  auto w = wants(16);
  w.offered.bf16_sums = w.offered.gradient_release = w.offered.checkpoints = false;
  for (auto const bytes : budgets(w)) {
    w.bytes = bytes;
    for (auto const& p : fit::plans(model, card, w).plans) {
      EXPECT_EQ(p.kept, fit::activations::all);
      EXPECT_FALSE(p.training.gradient_release);
      EXPECT_NE(p.training.accumulation, fit::accumulation::bf16);
      EXPECT_FALSE(p.training.offloads_states);
    }
  }
}

TEST(fit_plan, exact_plans_change_nothing_but_the_order_of_sums) {
  auto w = wants(16, precision::exact);
  w.clips = true;
  for (auto const bytes : budgets(w)) {
    w.bytes = bytes;
    for (auto const& p : fit::plans(model, card, w).plans) {
      EXPECT_EQ(p.training.column.name, "fp32");
      EXPECT_EQ(p.training.states.format, "fp32");
      EXPECT_FALSE(p.training.gradient_release);
      EXPECT_EQ(p.loss, 0);
    }
  }
}

TEST(fit_plan, offloaded_moments_cost_the_link_and_leave_the_device) {
  auto w = wants(8, precision::exact);
  auto const whole = fit::plans(model, card, w).plain.bytes;
  w.offered.offloads_states = true;
  w.bytes = whole.parameters + whole.gradients + whole.states() / 2;
  auto const found = fit::plans(model, card, w).plans;
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found.front().training.offloads_states);
  EXPECT_EQ(found.front().techniques.back().name, "moments in the host's memory");
  EXPECT_GT(found.front().techniques.back().seconds, 0);
}

TEST(fit_plan, the_same_question_has_the_same_answer) {
  auto const a = fit::plans(model, card, wants(24)).plans;
  auto const b = fit::plans(model, card, wants(24)).plans;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].bytes.total(), b[i].bytes.total());
    EXPECT_EQ(a[i].seconds, b[i].seconds);
  }
}

TEST(fit_plan, micro_batches_are_powers_of_two_and_divisors) {
  using list = std::vector<std::int64_t>;
  EXPECT_EQ(fit::detail::micro_batches(1), (list{1}));
  EXPECT_EQ(fit::detail::micro_batches(7), (list{1, 2, 7}));
  EXPECT_EQ(fit::detail::micro_batches(12), (list{1, 2, 3, 4, 6, 12}));
  EXPECT_LT(fit::detail::micro_batches(std::int64_t{720720} * 1024).size(), 80U);
}

TEST(fit_plan, what_cannot_be_planned_is_refused_with_what_is_wrong) {
  auto const refused = [&](auto change, char const* said) {
    auto w = wants(4);
    auto d = card;
    change(w, d);
    auto const text = refusal([&] { fit::plans(model, d, w); });
    EXPECT_NE(text.find(said), std::string::npos) << text;
  };
  refused([](auto& w, auto&) { w.batch = 0; }, "batch is 0");
  refused([](auto& w, auto&) { w.seq = -1; }, "seq is -1");
  refused([](auto& w, auto&) { w.bytes = -1; }, "bytes is -1");
  refused([](auto& w, auto&) { w.offered.storages.clear(); }, "no storage");
  refused([](auto&, auto& d) { d.flops_16 = 0; }, "rates of device 'rtx-3060-12g'");
  refused(
      [](auto& w, auto&) {
        w.offered.storages.erase(w.offered.storages.begin());
        w.precision = precision::exact;
      },
      "as precise as");
}

TEST(fit_device, names_bytes_and_what_is_unknown) {
  EXPECT_EQ(card.bytes, (std::int64_t{12288} - 768) << 20);
  EXPECT_EQ(fit::device_named("h200", 5).bytes, 5);
  EXPECT_EQ(fit::device_named("cpu", 7).bytes, 7);
  EXPECT_NE(refusal([] { fit::device_named("cpu"); }).find("must be given"), std::string::npos);
  EXPECT_NE(refusal([] { fit::device_named("t4", -1); }).find("-1"), std::string::npos);
  auto const unknown = refusal([] { fit::device_named("rtx-3060"); });
  EXPECT_NE(unknown.find("'rtx-3060' is none of rtx-3060-12g, "), std::string::npos);
  EXPECT_NE(unknown.find("b200, cpu"), std::string::npos);
}

/// "a, b, c" in parts.
std::vector<std::string> parts(std::string const& list) {
  std::vector<std::string> all;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 2) {
    end = list.find(", ", begin);
    all.push_back(list.substr(begin, end - begin));
  }
  return all;
}

TEST(fit_plan, every_known_model_and_card_takes_less_than_a_second) {
  auto const cards = parts(fit::known_devices());
  auto const models = fit::known_models();
  for (std::size_t i = 0; i < (std::max)(models.size(), cards.size()); ++i) {
    auto const& shape = models[i % models.size()];
    auto const transformer = fit::transformer(shape);
    auto const on = fit::device_named(cards[i % cards.size()], std::int64_t{1} << 35);
    auto w = wants(64);
    w.seq = (std::min)(shape.context, std::int64_t{512});
    auto const begin = std::clock();
    auto const found = fit::plans(transformer, on, w);
    EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 1) << shape.name;
    for (auto const& p : found.plans) EXPECT_LE(p.bytes.total(), on.bytes) << shape.name;
    EXPECT_TRUE(!found.plans.empty() || found.missing > 0) << shape.name;
  }
}

TEST(fit_device, sixteen_bits_are_no_slower_than_32_on_any_card) {
  for (auto const& name : parts(fit::known_devices())) {
    auto const d = fit::device_named(name, 1 << 30);
    if (d.name == "cpu" || d.name == "t4" || d.name.starts_with("v100")) continue;
    EXPECT_GT(d.at(2).flops, d.at(4).flops) << d.name;
  }
}

}  // namespace
