// Gradients stepped with as soon as they are complete: the bits of one step of all tensors, what
// clipping by the last norm and look-ahead skipping do, the order of calls, and resuming.
#include "memfit/release.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "memfit/codec/float.hpp"
#include "memfit/state_file.hpp"
#include "optimizer/model.hpp"
#include "support/files.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::argument_error;
using memfit::order_error;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Quantized ones with tails, and one that stays fp32.
constexpr std::int64_t counts[] = {300, 5003, 7};
constexpr std::int64_t min_quantized = 100;

test::vectors inputs(std::uint64_t seed) {
  test::vectors all;
  for (auto const n : counts) all.push_back(test::make_input(test::kind::normal, n, ++seed));
  return all;
}

template <class Rule>
Rule unusual() {
  Rule rule{};
  rule.lr = 0.01;
  rule.beta1 = 0.8;
  rule.weight_decay = 0.1;
  return rule;
}

/// A model whose gradients are released.
template <class Rule, class Format, class Column = memfit::fp32>
class released : public test::model<Rule, Format, Column> {
 public:
  explicit released(int threads = 1, memfit::release_options const& options = {})
      : test::model<Rule, Format, Column>(memfit::host{threads}, unusual<Rule>(), inputs(1),
                                          min_quantized),
        release_(memfit::host{threads}, this->optimizer(), options) {}

  auto& release() { return release_; }

  /// Completes all tensors, the last one first, from one piece of memory.
  void backward(test::vectors const& gradients) {
    for (std::size_t i = gradients.size(); i-- > 0;) {
      memory_.assign(memory_.size(), nan);
      std::copy(gradients[i].begin(), gradients[i].end(), memory_.begin());
      release_.complete(i, one(std::ssize(gradients[i])));
    }
  }
  void step(test::vectors const& gradients, float const* scale = nullptr) {
    release_.begin(scale);
    backward(gradients);
    release_.finish();
  }

 private:
  std::vector<memfit::tensor_ref<float const>> one(std::int64_t n) const {
    return {{memory_.data(), n}};
  }

  std::vector<float> memory_ = std::vector<float>(5003);
  memfit::gradient_release<memfit::optimizer<Rule, Format, Column>> release_;
};

using adamw8 = released<memfit::adamw, memfit::root8>;

template <class Released>
void is_the_step_of_all_at_once() {
  for (int threads : {1, 3}) {
    Released plain, stage_by_stage(threads);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      auto gradients = inputs(10 * step);
      gradients[1][17] = nan;  // left as it was, and counted
      plain.optimizer().step(gradients);
      stage_by_stage.step(gradients);
      ASSERT_EQ(stage_by_stage.bytes(), plain.bytes());
    }
    EXPECT_TRUE(stage_by_stage.intact());
    EXPECT_EQ(stage_by_stage.release().norm_sync(), 0) << "nothing is measured";
  }
}

TEST(release, without_clipping_and_scale_is_the_step_of_all_at_once) {
  is_the_step_of_all_at_once<adamw8>();
  is_the_step_of_all_at_once<
      released<memfit::lion, memfit::float8, memfit::stochastic<memfit::bf16>>>();
}

TEST(release, takes_tensors_in_any_order_and_leaves_absent_ones_alone) {
  adamw8 plain, stage_by_stage;
  auto const g = inputs(5);
  std::vector<memfit::tensor_ref<float const>> const without_second{
      {g[0].data(), counts[0]}, {}, {g[2].data(), counts[2]}};
  plain.optimizer().step(without_second);
  stage_by_stage.release().begin();
  stage_by_stage.release().complete({2, 1, 0}, test::vectors{g[2], {}, g[0]});
  stage_by_stage.release().finish();
  EXPECT_EQ(stage_by_stage.bytes(), plain.bytes());
  EXPECT_EQ(plain.optimizer().steps_sync(1), 0);
}

// Also LS-07: norms are those of unscaled gradients, whatever the scale.
TEST(release, clips_by_the_norm_of_the_last_window_or_by_that_of_this_one_so_far) {
  constexpr double most = 20;
  for (float const scale : {1.0f, 1024.0f, 0x1p-9f}) {
    double const inverse = 1 / static_cast<double>(scale);
    adamw8 plain, clipped(1, {.clip_norm = most});
    double last = 0;
    for (std::uint64_t step = 1; step <= 4; ++step) {
      auto gradients = inputs(10 * step);
      for (auto& g : gradients)
        for (float& x : g) x *= scale * (step == 2 ? 0.0625f : 1.0f);
      double squares = 0;
      for (std::size_t i = gradients.size(); i-- > 0;) {
        for (float const x : gradients[i])
          squares += static_cast<double>(x) * static_cast<double>(x);
        double const reference = std::max(last, std::sqrt(squares) * inverse);
        auto const multiplier =
            static_cast<float>(inverse * (reference > most ? most / reference : 1));
        plain.optimizer().step_one(i, gradients[i], memfit::gate{.multiplier = &multiplier});
      }
      clipped.step(gradients, &scale);
      ASSERT_EQ(clipped.bytes(), plain.bytes()) << step;
      last = clipped.release().norm_sync();
      EXPECT_NEAR(last, std::sqrt(squares) * inverse, 1e-12 * last);
      EXPECT_EQ(last > most, step != 2) << "both cases occur";
    }
  }
}

// GA-05 as well: a norm of zero makes no multiplier.
TEST(release, goes_on_after_zeros_and_from_a_norm_that_is_given) {
  adamw8 plain, clipped(1, {.clip_norm = 1});
  auto zeros = inputs(3), gradients = inputs(4);
  for (auto& g : zeros) g.assign(g.size(), 0.0f);
  for (auto& g : gradients)
    for (float& x : g) x *= 0x1p-8f;
  for (auto const& g : {zeros, gradients}) {
    plain.optimizer().step(g);
    clipped.step(g);
    EXPECT_EQ(clipped.bytes(), plain.bytes());
  }
  EXPECT_LT(clipped.release().norm_sync(), 1);

  clipped.release().load(8);
  float const eighth = 0.125f;
  plain.optimizer().step(gradients, memfit::gate{.multiplier = &eighth});
  clipped.step(gradients);
  EXPECT_EQ(clipped.bytes(), plain.bytes());
}

TEST(release, a_stage_that_is_not_finite_skips_itself_and_all_later_ones) {
  memfit::loss_scaler scaler(memfit::host{1}, {.initial = 1024, .interval = 2});
  adamw8 m, first_window, whole;
  auto const good = inputs(20);
  auto bad = inputs(30);
  bad[1][4711] = nan;

  m.release().begin(scaler.scale());
  m.backward(good);
  scaler.update(m.release().finish(scaler));
  double const norm = m.release().norm_sync();
  EXPECT_GT(norm, 0);

  auto const before = m.parameter(0), second = m.parameter(1), last = m.parameter(2);
  m.release().begin(scaler.scale());
  m.backward(bad);
  scaler.update(m.release().finish(scaler));
  EXPECT_EQ(m.parameter(0), before) << "later in the backward pass";
  EXPECT_EQ(m.parameter(1), second);
  EXPECT_NE(m.parameter(2), last) << "stepped before it was known";
  EXPECT_EQ(m.optimizer().steps_sync(0), 1);
  EXPECT_EQ(m.optimizer().steps_sync(1), 1);
  EXPECT_EQ(m.optimizer().steps_sync(2), 2);
  EXPECT_EQ(m.optimizer().nonfinite_sync(), 0u);
  EXPECT_EQ(m.release().norm_sync(), norm) << "the reference stays that of the last whole window";
  EXPECT_EQ(scaler.value_sync(), 512);
  EXPECT_EQ(scaler.skipped_sync(), 1);

  for (int window = 0; window < 2; ++window) {
    m.release().begin(scaler.scale());
    m.backward(good);
    scaler.update(m.release().finish(scaler));
  }
  EXPECT_EQ(m.optimizer().steps_sync(0), 3);
  EXPECT_EQ(scaler.value_sync(), 1024) << "grows again after two clean windows";
}

TEST(release, a_resumed_run_goes_on_bit_for_bit) {
  test::folder const in;
  memfit::release_options const options{.clip_norm = 5};
  adamw8 whole(1, options), half(1, options), rest(1, options);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    whole.step(inputs(10 * step));
    half.step(inputs(10 * step));
  }
  memfit::save_state(in / "half", half.optimizer(), half.release());
  rest.step(inputs(99));
  memfit::load_state(in / "half", rest.optimizer(), rest.release());
  for (std::size_t i = 0; i < rest.size(); ++i)
    for (std::int64_t k = 0; k < counts[i]; ++k) rest.tensor(i)[k] = half.tensor(i)[k];
  whole.step(inputs(30));
  rest.step(inputs(30));
  EXPECT_EQ(rest.bytes(), whole.bytes());

  rest.release().begin();
  EXPECT_THROW(memfit::save_state(in / "no", rest.release()), order_error);
  EXPECT_THROW(memfit::load_state(in / "half", rest.release()), order_error);
  rest.release().finish();
  for (double const norm : {-1.0, std::numeric_limits<double>::infinity()}) {
    memfit::tensor_file_writer to(in / "bad", {{"release.norm", memfit::stored_type::f64, {}}});
    to.write(0, &norm, sizeof norm);
    to.commit();
    test::expect_refusal<memfit::file_error>(
        [&] { memfit::load_state(in / "bad", rest.release()); }, {"release.norm"});
  }
}

TEST(release, what_is_out_of_order_changes_nothing) {
  adamw8 m;
  auto& r = m.release();
  auto const g = inputs(7);
  using calls = std::vector<std::pair<std::function<void()>, const char*>>;
  auto const all_refused = [&](calls const& refused) {
    auto const before = m.bytes();
    for (auto const& [call, said] : refused) {
      test::expect_refusal<order_error>(call, {said});
      EXPECT_EQ(m.bytes(), before) << said;
    }
  };
  memfit::loss_scaler scaler(memfit::host{1});
  auto const complete = [&](std::size_t i) { r.complete(i, test::vectors{g[i]}); };
  all_refused({{[&] { complete(0); }, "begin comes first"},
               {[&] { r.micro_batch(1); }, "begin_folded comes first"},
               {[&] { r.finish(); }, "begin comes first"},
               {[&] { r.finish(scaler); }, "begin comes first"}});
  r.begin();
  complete(0);
  all_refused({{[&] { r.begin(); }, "finish comes first"},
               {[&] { r.begin_folded(4); }, "finish comes first"},
               {[&] { r.load(1); }, "finish comes first"},
               {[&] { r.micro_batch(1); }, "begin_folded comes first"},
               {[&] { complete(0); }, "tensor 0 is complete already"}});
  complete(1);
  r.finish();
  r.begin_folded(4);
  all_refused({{[&] { complete(0); }, "micro_batch comes first"},
               {[&] { r.micro_batch(5); }, "5 items after 0 of the window's 4"},
               {[&] { r.micro_batch(-1); }, "-1 items"}});
  r.micro_batch(3);
  complete(0);
  complete(2);
  all_refused({{[&] { r.finish(); }, "3 of 4 items"},
               {[&] { r.micro_batch(2); }, "2 items after 3"},
               {[&] { complete(2); }, "tensor 2 is complete already"}});
  r.micro_batch(1);
  complete(0);
  all_refused(
      {{[&] { r.finish(); }, "tensor 2 had part"}, {[&] { r.finish(scaler); }, "tensor 2"}});
  complete(2);
  r.finish();
  r.abandon();
  r.begin_folded(2);
  r.micro_batch(2);
  complete(2);
  r.micro_batch(0);
  r.abandon();
  r.begin();
  complete(2);
  r.finish();
}

TEST(release, hostile_arguments_change_nothing) {
  adamw8 m;
  auto& r = m.release();
  auto const g = inputs(7);
  r.begin();
  auto const before = m.bytes();
  auto const refused = [&](auto const& call, std::initializer_list<std::string_view> parts) {
    test::expect_refusal<argument_error>(call, parts);
    EXPECT_EQ(m.bytes(), before);
  };
  refused([&] { r.complete({3}, test::vectors{g[0]}); }, {"tensor 3 of 3"});
  refused([&] { r.complete({0, 1}, test::vectors{g[0]}); }, {"1 gradients for 2 tensors"});
  refused([&] { r.complete({0, 2, 0}, test::vectors{g[0], g[2], g[0]}); }, {"twice", "number 0"});
  refused([&] { r.complete({0, 1}, test::vectors{g[0], g[2]}); }, {"'t1'", "7", "5003"});
  refused([&] { r.complete(0, std::vector{m.tensor(0).ref("t0")}); }, {"overlaps"});
  r.finish();
  refused([&] { r.load(-1); }, {"-1"});
  refused([&] { r.load(static_cast<double>(nan)); }, {"nan"});
  refused([&] { r.begin_folded(0); }, {"0 items"});
  m.optimizer().rule().lr = -1;
  r.begin();
  EXPECT_THROW(r.complete(0, test::vectors{g[0]}), memfit::hyperparameter_error);
  r.finish();
  for (double const most : {0.0, -1.0, static_cast<double>(nan)})
    EXPECT_THROW(adamw8(1, {.clip_norm = most}), memfit::hyperparameter_error);
}

}  // namespace
