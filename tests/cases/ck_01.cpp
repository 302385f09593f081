// CK-01: a recomputed forward drew fresh dropout masks, so the gradient belonged to another sample
// than the loss. Here: ten layers of dropout, whose gradient is their output, under every schedule,
// with memfit's noise and with a generator of the user's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "memfit/checkpoint/plan.hpp"
#include "memfit/checkpoint/run.hpp"
#include "memfit/exec/host.hpp"
#include "support/generator.hpp"

namespace {

namespace plan = memfit::checkpoint;

constexpr std::int64_t layers = 10, width = 1000;

/// Inverted dropout that keeps 9 of 10. It saves a mask where it says so, and else draws it again.
struct dropout {
  std::mt19937* own = nullptr;  ///< null: memfit's noise

  void forward(std::int64_t, void const* in, void* out, plan::context& c) const {
    std::vector<float> mask(width);
    draw(c.noise, mask.data());
    if (c.saves()) std::copy(mask.begin(), mask.end(), c.saved.take<float>(width));
    if (out == nullptr) return;
    for (std::int64_t j = 0; j < width; ++j)
      static_cast<float*>(out)[j] =
          static_cast<float const*>(in)[j] * mask[static_cast<std::size_t>(j)];
  }
  void backward(std::int64_t, void const*, void const*, void* out_gradient, void* in_gradient,
                plan::context& c) const {
    auto const* const mask = c.saved.take<float>(width);
    for (std::int64_t j = 0; j < width; ++j)
      static_cast<float*>(in_gradient)[j] = static_cast<float*>(out_gradient)[j] * mask[j];
  }
  void draw(memfit::noise_key key, float* mask) const {
    for (std::int64_t j = 0; j < width; ++j) {
      auto const bits = own != nullptr ? static_cast<std::uint32_t>((*own)())
                                       : memfit::noise(key, static_cast<std::uint32_t>(j));
      mask[j] = bits < 3865470566u ? 1 / 0.9f : 0.0f;
    }
  }
};

struct step {
  std::vector<float> output, gradient;
};

step train(plan::chain const& stages, plan::schedule const& schedule, std::mt19937* own) {
  std::vector<float> const ones(width, 1.0f);
  step result{std::vector<float>(width), std::vector<float>(width)};
  dropout const model{own};
  plan::options options;
  if (own != nullptr) options.generator = *own;
  memfit::checkpointed run{memfit::host{1}, stages, schedule, options};
  run.forward(model, ones.data(), {.seed = 4, .step = 2});
  std::memcpy(result.output.data(), run.output(), width * sizeof(float));
  std::memcpy(run.output_gradient(), ones.data(), width * sizeof(float));
  run.backward(model, result.gradient.data());
  return result;
}

std::vector<plan::schedule> schedules_of(plan::chain const& stages) {
  std::vector<plan::schedule> all{plan::keep_all(stages), plan::sqrt_n(stages),
                                  plan::recompute_all(stages), plan::revolve(stages, 3)};
  for (std::int64_t length : {10, 5, 4, 1}) all.push_back(plan::every(stages, length));
  for (auto const& s : plan::trade(stages, 8)) all.push_back(s);
  return all;
}

void expect_gradient_is_output(bool own_generator) {
  plan::chain const stages(
      layers, {.output = width * 4, .gradient = width * 4, .variants = {{.saved = width * 4}}});
  std::vector<float> first;
  for (auto const& schedule : schedules_of(stages)) {
    std::mt19937 generator(17);
    auto const done = train(stages, schedule, own_generator ? &generator : nullptr);
    EXPECT_EQ(done.output, done.gradient);
    if (first.empty()) first = done.output;
    EXPECT_EQ(done.output, first);
    std::mt19937 plain(17);
    if (own_generator) plain.discard(layers * width);
    EXPECT_EQ(generator, plain);
  }
  float kept = 1;
  for (int i = 0; i < layers; ++i) kept *= 1 / 0.9f;
  auto const dropped = std::count(first.begin(), first.end(), 0.0f);
  EXPECT_EQ(dropped + std::count(first.begin(), first.end(), kept), width);
  EXPECT_NEAR(static_cast<double>(dropped), 651.3, 60);  // 1 - 0.9^10, four standard deviations
}

TEST(CK_01, the_gradient_of_dropout_is_its_output_under_every_schedule) {
  expect_gradient_is_output(false);
}

TEST(CK_01, so_it_is_with_a_generator_of_the_users) {
  expect_gradient_is_output(true);
}

}  // namespace
