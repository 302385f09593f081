// Windows: weights, the first contribution that overwrites, empty and partial windows, sums that a
// backward pass adds to itself, and what is not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/scaler.hpp"
#include "support/inputs.hpp"

namespace {

using memfit::gradient_accumulator, memfit::host;
using tensors = std::vector<std::vector<float>>;

/// The window's mean gradient, as a step would read it.
std::vector<float> result(auto const& sums, memfit::gate const& g) {
  std::vector<float> all;
  for (auto const& t : sums)
    for (std::int64_t i = 0; i < t.count; ++i)
      all.push_back(static_cast<float>(t.data[i]) * *g.multiplier);
  return all;
}

/// Gradients of single items, and their sums over runs of them.
struct items {
  static constexpr std::size_t count = 24, elements = 37;
  std::vector<std::vector<float>> each;
  items() {
    for (std::size_t i = 0; i < count; ++i)
      each.push_back(test::make_input(test::kind::normal, elements, i + 1));
  }
  tensors sum(std::size_t first, std::size_t n) const {
    std::vector<float> total(elements);
    for (std::size_t i = first; i < first + n; ++i)
      for (std::size_t k = 0; k < elements; ++k) total[k] += each[i][k];
    return {total};
  }
  tensors mean(std::size_t first, std::size_t n) const {
    auto total = sum(first, n);
    for (auto& x : total[0]) x /= static_cast<float>(n);
    return total;
  }
};

TEST(window, is_the_mean_over_all_items_however_they_are_divided) {
  items const all;
  auto const expected = all.mean(0, items::count)[0];
  for (auto const& division : std::vector<std::vector<std::size_t>>{
           {24}, {1, 23}, {23, 1}, {5, 7, 12}, {0, 24, 0}, std::vector<std::size_t>(24, 1)}) {
    gradient_accumulator means(host{1}, all.sum(0, 0)), sums(host{1}, all.sum(0, 0));
    std::size_t first = 0;
    for (auto n : division) {
      // A mean over no items is a NaN.
      means.add(all.mean(first, n), n);
      sums.add_sums(all.sum(first, n), n);
      first += n;
    }
    auto const a = result(means, means.close()), b = result(sums, sums.close());
    for (std::size_t k = 0; k < items::elements; ++k) {
      EXPECT_NEAR(a[k], expected[k], 1e-6f);
      EXPECT_NEAR(b[k], expected[k], 1e-6f);
    }
  }
}

TEST(window, the_first_contribution_overwrites) {
  gradient_accumulator sums(host{1}, tensors{{0, 0}});
  sums.add_sums(tensors{{NAN, 5}}, 1);
  sums.close();
  EXPECT_TRUE(sums.overwrites());
  sums.add_sums(tensors{{1, 2}}, 1);
  EXPECT_FALSE(sums.overwrites());
  sums.add_sums(tensors{{1, 2}}, 1);
  EXPECT_EQ(result(sums, sums.close()), (std::vector<float>{1, 2}));
  EXPECT_EQ(*sums.nonfinite(), 0u);
}

TEST(window, without_micro_batches_or_items_is_skipped) {
  tensors parameters{{1, 2}};
  memfit::optimizer<memfit::adamw, memfit::fp32> opt(
      host{1}, memfit::adamw{.lr = 0.1, .weight_decay = 0.1}, parameters);
  memfit::loss_scaler scaler(host{1});
  gradient_accumulator sums(host{1}, parameters);
  auto const step = [&] {
    auto g = scaler.unscale(sums);
    EXPECT_EQ(*g.skip, memfit::skip_empty);
    EXPECT_EQ(*g.multiplier, 0.0f);
    g = memfit::clip_norm(sums, g, 1);
    opt.step(sums, g);
    scaler.update(g);
  };
  step();
  sums.add(tensors{{NAN, INFINITY}}, 0);
  EXPECT_EQ(sums.begin()->data[0], 0.0f);
  step();
  sums.add_sums(tensors{{NAN, NAN}}, 1);
  opt.step(sums, scaler.unscale(sums));
  scaler.update();
  step();
  EXPECT_EQ(parameters[0], (std::vector<float>{1, 2}));
  EXPECT_EQ(opt.steps_sync(0), 0);
  EXPECT_EQ(scaler.skipped_sync(), 1) << "an empty window is no overflow";
}

TEST(window, counts_may_lie_in_the_executors_memory) {
  gradient_accumulator sums(host{1}, tensors{{0}});
  for (float items : {3.0f, 1.0f, 0.0f, -2.0f, NAN}) sums.add(tensors{{items + 1}}, &items);
  EXPECT_EQ(result(sums, sums.close())[0], (3.0f * 4 + 1 * 2) / 4);
}

TEST(window, zeroes_gradients_on_request) {
  gradient_accumulator sums(host{1}, tensors{{0, 0}, {0}});
  tensors g{{1, -2}, {3}};
  sums.add(g, 2, memfit::after_add::zero);
  EXPECT_EQ(g, (tensors{{0, 0}, {0}}));
  g = {{1, -2}, {NAN}};
  sums.add(g, 0, memfit::after_add::zero);
  EXPECT_EQ(g, (tensors{{0, 0}, {0}})) << "no items";
  EXPECT_EQ(result(sums, sums.close()), (std::vector<float>{1, -2, 3}));
}

TEST(window, a_tensor_without_gradient_gets_nothing) {
  using views = std::vector<memfit::tensor_ref<float const>>;
  std::vector<float> const g{1, 2};
  gradient_accumulator sums(host{1}, tensors{{0, 0}, {0, 0}});
  sums.add(tensors{{9, 9}, {9, 9}}, 1);
  sums.close();
  sums.add(views{{g.data(), 2}, {}}, 1);
  sums.add(views{{}, {g.data(), 2}}, 1);
  sums.add(views{{}, {}}, 2);
  EXPECT_EQ(result(sums, sums.close()), (std::vector<float>{0.25f, 0.5f, 0.25f, 0.5f}));
}

TEST(window, a_backward_pass_may_add_to_the_sums_itself) {
  gradient_accumulator sums(host{1}, tensors{{0, 0}});
  for (int window = 0; window < 3; ++window) {
    for (float micro : {1.0f, 2.0f}) {
      auto const s = sums.sums(0);
      for (std::int64_t i = 0; i < s.count; ++i) {
        float const before = sums.overwrites() ? 0.0f : s.data[i];
        s.data[i] = before + micro * static_cast<float>(i + 1);
      }
      sums.added(2);
    }
    EXPECT_EQ(sums.norm()[0], std::sqrt(45.0));
    EXPECT_EQ(result(sums, sums.close()), (std::vector<float>{0.75f, 1.5f})) << window;
  }
  sums.zero();
  EXPECT_FALSE(sums.overwrites());
  sums.sums(0).data[1] += INFINITY;
  sums.added(1);
  sums.add_sums(tensors{{1, 1}}, 1);
  memfit::loss_scaler scaler(host{1});
  EXPECT_EQ(*scaler.unscale(sums).skip, memfit::skip_nonfinite);
  EXPECT_EQ(result(sums, {.multiplier = scaler.scale()})[0], 65536.0f);
}

TEST(window, sums_that_a_backward_pass_added_to_last_are_looked_at) {
  memfit::loss_scaler scaler(host{1});
  for (float bad : {HUGE_VALF, -HUGE_VALF, NAN, 1.0f}) {
    gradient_accumulator sums(host{1}, tensors{{0, 0}});
    sums.add_sums(tensors{{1, 1}}, 1);
    sums.sums(0).data[1] += bad;
    sums.added(1);
    auto const g = scaler.unscale(sums);
    EXPECT_EQ(*g.skip, std::isfinite(bad) ? 0u : memfit::skip_nonfinite) << bad;
    g.mark_stepped();
    scaler.update(g);
  }
}

TEST(window, every_addition_draws_its_own_noise) {
  gradient_accumulator<memfit::stochastic<memfit::bf16>> sums(host{1},
                                                              tensors{std::vector<float>(500)});
  tensors const one{std::vector<float>(500, 1.0f)}, little{std::vector<float>(500, 0x1p-9f)};
  sums.add_sums(one, 1);
  for (int i = 0; i < 1000; ++i) sums.add_sums(little, 1);
  // With the same noise again and again a sum would stay at 1, or grow at every addition.
  for (std::int64_t i = 0; i < 500; ++i) {
    EXPECT_GT(static_cast<float>(sums.begin()->data[i]), 1.5f);
    EXPECT_LT(static_cast<float>(sums.begin()->data[i]), 5.0f);
  }
}

TEST(window, sums_that_overflow_skip_though_every_gradient_is_finite) {
  memfit::loss_scaler scaler(host{1});
  gradient_accumulator wide(host{1}, tensors{{0}});
  wide.add_sums(tensors{{3e38f}}, 1);
  wide.add_sums(tensors{{3e38f}}, 1);
  EXPECT_EQ(*scaler.unscale(wide).skip, memfit::skip_nonfinite);
  gradient_accumulator<memfit::stochastic<memfit::bf16>> narrow(host{1}, tensors{{0}});
  narrow.add_sums(tensors{{3.4e38f}}, 1);
  EXPECT_EQ(*scaler.unscale(narrow).skip, memfit::skip_nonfinite) << "above the largest bf16";
}

TEST(window, the_norm_is_that_of_the_sums_and_computed_anew_for_each_window) {
  gradient_accumulator sums(host{1}, tensors{{0, 0}, {0}});
  for (float scale : {1.0f, 10.0f}) {
    sums.add_sums(tensors{{2 * scale, 3 * scale}, {6 * scale}}, 2);
    auto const g = memfit::clip_norm(sums, sums.close(), 1.0);
    EXPECT_NEAR(sums.clipper().norm_sync(), 3.5 * static_cast<double>(scale), 1e-6);
    EXPECT_NEAR(result(sums, g)[2], 6.0f / 7, 1e-6f);
  }
}

TEST(window, moving_keeps_the_sums) {
  gradient_accumulator sums(host{1}, tensors{{0, 0}});
  sums.add_sums(tensors{{1, 2}}, 1);
  auto moved = std::move(sums);
  moved.add_sums(tensors{{1, 2}}, 1);
  EXPECT_EQ(result(moved, moved.close()), (std::vector<float>{1, 2}));
}

}  // namespace
