#include "toy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace test {

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

float uniform(std::mt19937& dice) {
  return static_cast<float>(dice() % 2001) * 1e-3f - 1.0f;
}

}  // namespace

toy::toy(shape of, std::uint32_t seed)
    : embedding_(of.embedding), own_generator_(of.own_generator) {
  std::mt19937 dice(seed);
  for (std::int64_t i = 0; i <= of.stages; ++i)
    widths_.push_back(1 + static_cast<std::int64_t>(dice() % 90));
  for (std::int64_t i = 0; i < of.stages; ++i) {
    first_parameter_.push_back(parameters_.size());
    for (std::int64_t j = 0; j < out_width(i); ++j) parameters_.push_back(3 * uniform(dice));
  }
  for (std::int64_t j = 0; j < widths_[0]; ++j) input_.push_back(uniform(dice));
  reset();
}

void toy::reset(std::int64_t throw_at) {
  gradients_.assign(parameters_.size(), 0.25f);  // what earlier micro-batches left there
  generator_.seed(99);
  done_.assign(widths_.size(), false);
  calls_ = replays_ = 0;
  throw_at_ = throw_at;
}

plan::chain toy::chain() const {
  plan::chain stages;
  for (std::int64_t i = 0; i + 1 < std::ssize(widths_); ++i) {
    auto const output = out_width(i) * 4;
    plan::stage s{.output = output,
                  .gradient = output,
                  .forward = out_width(i),
                  .scratch = 2 * plan::rounded(output),
                  .reads_output = reads_output(i),
                  .variants = {}};
    for (int v = 0; v < variants; ++v) {
      plan::carver counter;
      take(i, v, counter);
      s.variants.push_back({.saved = counter.bytes(),
                            .forward = out_width(i) + 1,
                            .replay = out_width(i),
                            .backward = out_width(i) * (v + 2),
                            .forward_scratch = 2 * plan::rounded(output),
                            .backward_scratch = v * plan::rounded(output)});
    }
    stages.push_back(s);
  }
  return stages;
}

toy::arrays toy::take(std::int64_t stage, int variant, plan::carver& saved) const {
  auto const n = out_width(stage);
  switch (variant) {
    case 0:
      return {saved.take<float>(n), saved.take<float>(n), nullptr};
    case 1:
      return {nullptr, saved.take<float>(n), nullptr};
    default:
      return {nullptr, nullptr, own_generator_ ? saved.take<std::uint8_t>(n) : nullptr};
  }
}

void toy::count_call() {
  if (calls_++ == throw_at_) throw thrown();
}

void toy::draw(std::int64_t stage, memfit::noise_key key, float* mask) {
  for (std::int64_t j = 0; j < out_width(stage); ++j) {
    auto const bits = own_generator_ ? static_cast<std::uint32_t>(generator_())
                                     : memfit::noise(key, static_cast<std::uint32_t>(j));
    mask[j] = bits % 4 != 0 ? 4.0f / 3.0f : 0.0f;
  }
}

void toy::raise(std::int64_t stage, float const* x, float* u) const {
  auto const* const p = parameters_.data() + first_parameter_[index(stage)];
  for (std::int64_t j = 0; j < out_width(stage); ++j)
    u[j] = p[j] * x[j % in_width(stage)] + 0.5f * x[(j + 1) % in_width(stage)];
}

void toy::bend(std::int64_t stage, float const* u, float const* mask, float* y) const {
  for (std::int64_t j = 0; j < out_width(stage); ++j) y[j] = mask[j] * u[j] / (1 + std::fabs(u[j]));
}

void toy::go_back(std::int64_t stage, float const* x, float const* u, float const* mask,
                  float const* y, float* dy, float* dx) {
  auto const first = first_parameter_[index(stage)];
  auto const in = in_width(stage), out = out_width(stage);
  if (dx != nullptr) std::fill(dx, dx + in, 0.0f);
  for (std::int64_t j = 0; j < out; ++j) {
    float const slope = reads_output(stage) ? (mask[j] != 0 ? 1 - std::fabs(y[j] / mask[j]) : 0.0f)
                                            : 1 / (1 + std::fabs(u[j]));
    float const du = dy[j] * mask[j] * slope * slope;
    gradients_[first + index(j)] += du * x[j % in];
    if (dx != nullptr) {
      dx[j % in] += du * parameters_[first + index(j)];
      dx[(j + 1) % in] += du * 0.5f;
    }
  }
  std::fill(dy, dy + out, nan);
}

void toy::write_output_gradient(float const* y, float* dy) const {
  for (std::int64_t j = 0; j < widths_.back(); ++j) dy[j] = 1 - 0.5f * y[j];
}

outcome toy::run_plain() {
  auto const n = std::ssize(widths_) - 1;
  std::vector<std::vector<float>> x{input_}, u, mask;
  for (std::int64_t i = 0; i < n; ++i) {
    auto const width = index(out_width(i));
    x.emplace_back(width);
    u.emplace_back(width);
    mask.emplace_back(width);
    draw(i, memfit::make_noise_key(noise().seed, noise().step, -1 - i), mask.back().data());
    raise(i, x[index(i)].data(), u.back().data());
    bend(i, u.back().data(), mask.back().data(), x.back().data());
  }
  std::vector<float> dy(x.back().size());
  write_output_gradient(x.back().data(), dy.data());
  for (auto i = n - 1; i >= 0; --i) {
    std::vector<float> dx(i == 0 && embedding_ ? 0 : x[index(i)].size());
    go_back(i, x[index(i)].data(), u[index(i)].data(), mask[index(i)].data(),
            x[index(i + 1)].data(), dy.data(), dx.empty() ? nullptr : dx.data());
    dy = dx;
  }
  return {x.back(), dy, gradients_, generator_};
}

void toy::forward(std::int64_t stage, void const* in, void* out, plan::context& c) {
  auto const n = out_width(stage);
  EXPECT_EQ(c.replay, done_[index(stage)]) << "stage " << stage;
  EXPECT_EQ(c.wants_output, out != nullptr) << "stage " << stage;
  done_[index(stage)] = true;
  replays_ += c.replay;
  auto* const u = c.scratch.take<float>(n);
  auto* const mask = c.scratch.take<float>(n);
  std::fill(u, u + n, nan);
  std::fill(mask, mask + n, nan);
  draw(stage, c.noise, mask);
  count_call();
  raise(stage, static_cast<float const*>(in), u);
  if (out != nullptr) bend(stage, u, mask, static_cast<float*>(out));
  if (!c.saves()) return;
  auto const saved = take(stage, c.variant, c.saved);
  if (saved.u != nullptr) std::copy(u, u + n, saved.u);
  if (saved.mask != nullptr) std::copy(mask, mask + n, saved.mask);
  if (saved.bits != nullptr)
    std::transform(mask, mask + n, saved.bits, [](float m) { return m != 0; });
}

void toy::backward(std::int64_t stage, void const* in, void const* out, void* out_gradient,
                   void* in_gradient, plan::context& c) {
  EXPECT_EQ(out != nullptr, reads_output(stage)) << "stage " << stage;
  EXPECT_TRUE(c.saves() && !c.replay);
  auto const n = out_width(stage);
  auto const* const x = static_cast<float const*>(in);
  auto saved = take(stage, c.variant, c.saved);
  if (saved.u == nullptr) {
    saved.u = c.scratch.take<float>(n);
    raise(stage, x, saved.u);
  }
  if (saved.mask == nullptr) {
    saved.mask = c.scratch.take<float>(n);
    if (saved.bits != nullptr)
      std::transform(saved.bits, saved.bits + n, saved.mask,
                     [](std::uint8_t bit) { return bit != 0 ? 4.0f / 3.0f : 0.0f; });
    else
      draw(stage, c.noise, saved.mask);
  }
  count_call();
  go_back(stage, x, saved.u, saved.mask, static_cast<float const*>(out),
          static_cast<float*>(out_gradient), static_cast<float*>(in_gradient));
}

namespace {

/// Stages first … last, their input being alive before and after.
class dice_planner {
 public:
  dice_planner(plan::chain const& stages, bool offload, std::mt19937& dice)
      : stages_(stages), offload_(offload), dice_(dice) {
    plan_from(0, std::ssize(stages) - 1, false);
  }
  std::vector<plan::action> const& actions() const { return actions_; }

 private:
  using act = plan::act;

  bool toss() { return dice_() % 2 != 0; }
  void put(act what, std::int64_t i) { actions_.push_back({what, i}); }
  void run(std::int64_t i, bool output) {
    auto const variant = static_cast<int>(dice_() % stages_[index(i)].variants.size());
    actions_.push_back({act::run, i, variant, output});
  }
  void back(std::int64_t i, bool output) {
    bool const reads = stages_[index(i)].reads_output;
    if (output && !reads) put(act::drop, i + 1);
    put(act::backward, i);
    if (output && reads) put(act::drop, i + 1);
  }

  /// `copy`: there is one of the input, to be discarded on the way.
  void plan_from(std::int64_t first, std::int64_t last, bool copy) {
    bool const splits = first < last && toss();
    bool const leaves = splits && first > 0 && (copy || (offload_ && toss()));
    if (copy && !leaves) put(act::discard, first);
    if (splits) return split(first, last, leaves, copy);
    bool const output =
        first < last || last + 1 == std::ssize(stages_) || stages_[index(first)].reads_output;
    run(first, output);
    if (first < last)
      plan_from(first + 1, last, false);
    else if (last + 1 == std::ssize(stages_))
      put(act::turn, 0);
    back(first, output);
  }

  void split(std::int64_t first, std::int64_t last, bool leaves, bool copy) {
    auto const middle =
        first + 1 + static_cast<std::int64_t>(dice_() % static_cast<std::uint64_t>(last - first));
    if (leaves && !copy) put(act::store, first);
    for (auto i = first; i < middle; ++i) {
      put(act::pass, i);
      if (i > first || leaves) put(act::drop, i);
    }
    plan_from(middle, last, false);
    put(act::drop, middle);
    bool const keeps_copy = leaves && toss();
    if (leaves) put(act::load, first);
    if (leaves && !keeps_copy) put(act::discard, first);
    plan_from(first, middle - 1, keeps_copy);
  }

  plan::chain const& stages_;
  bool offload_;
  std::mt19937& dice_;
  std::vector<plan::action> actions_;
};

}  // namespace

plan::schedule random_schedule(plan::chain const& stages, bool offload, std::mt19937& dice) {
  return plan::check(stages, dice_planner(stages, offload, dice).actions());
}

}  // namespace test
