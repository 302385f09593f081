// Clipping: the multiplier of a norm above the limit, in the units of unscaled gradients, and the
// percentile of past norms against a reference that sorts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "memfit/clip.hpp"
#include "memfit/exec/host.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::gate, memfit::norm_clipper;

TEST(clip, brings_a_norm_above_the_limit_down_to_it_and_leaves_others) {
  norm_clipper clipper(memfit::host{1});
  struct clipped {
    double norm;
    float before;
    double most;
    float after;
  };
  constexpr clipped all[] = {{5, 1, 1, 0.2f},      {5, 0.5f, 1, 0.2f},
                             {5, -0.5f, 1, -0.2f}, {5, 1, 5, 1},
                             {5, 0.1f, 1, 0.1f},   {0, 0.25f, 1, 0.25f},
                             {5, 0, 1, 0},         {1e60, 1, 1e30, 1e-30f},
                             {5, 1, HUGE_VAL, 1},  {4096, 0x1p-12f, 1, 0x1p-12f}};
  for (auto const& c : all) {
    auto const g = clipper.limit(&c.norm, {.multiplier = &c.before}, c.most);
    EXPECT_EQ(*g.multiplier, c.after) << c.norm << ' ' << c.before << ' ' << c.most;
    EXPECT_EQ(*g.skip, 0u);
    EXPECT_EQ(clipper.norm_sync(), c.norm * std::fabs(static_cast<double>(c.before)));
  }
}

TEST(clip, keeps_a_skip_flag_and_its_reason) {
  norm_clipper clipper(memfit::host{1});
  double const norm = std::nan("");
  std::uint32_t const skip = memfit::skip_empty;
  float const zero = 0;
  auto const g = clipper.limit(&norm, {.multiplier = &zero, .skip = &skip}, 1);
  EXPECT_EQ(*g.skip, memfit::skip_empty);
}

TEST(clip, clips_again_what_it_has_clipped) {
  norm_clipper clipper(memfit::host{1});
  double const norm = 8;
  auto g = clipper.limit(&norm, {}, 4);
  g = clipper.limit(&norm, g, 2);
  EXPECT_EQ(*g.multiplier, 0.25f);
  g = clipper.limit(&norm, g, 4);
  EXPECT_EQ(*g.multiplier, 0.25f);
}

TEST(clip, refuses_limits_that_are_none) {
  norm_clipper clipper(memfit::host{1});
  double const norm = 1;
  for (double most : {0.0, -1.0, std::nan("")})
    test::expect_refusal<memfit::hyperparameter_error>([&] { clipper.limit(&norm, {}, most); },
                                                       {"norm_clipper::limit", "largest norm"});
  for (double percent : {0.0, -1.0, 100.5, std::nan("")})
    test::expect_refusal<memfit::hyperparameter_error>(
        [&] { clipper.percentile(&norm, {}, percent); }, {"percentile"});
  test::expect_refusal<memfit::argument_error>([&] { clipper.limit(nullptr, {}, 1); }, {"null"});
}

TEST(clip, percentile_is_that_of_the_last_hundred_norms_that_did_not_skip) {
  for (double percent : {0.5, 5.0, 50.0, 99.0, 100.0}) {
    norm_clipper clipper(memfit::host{1});
    std::vector<double> past;
    std::mt19937 bits(7);
    for (int step = 0; step < 350; ++step) {
      // Ties, zeros and now and then a norm that is not finite.
      double const norm = step % 17 == 3 ? HUGE_VAL : static_cast<double>(bits() % 50) / 4;
      auto const g = clipper.percentile(&norm, {}, percent);
      if (std::isinf(norm)) {
        EXPECT_EQ(*g.skip, memfit::skip_nonfinite);
        continue;
      }
      past.push_back(norm);
      auto last = std::vector<double>(past.end() - std::min<std::ptrdiff_t>(100, std::ssize(past)),
                                      past.end());
      std::sort(last.begin(), last.end());
      auto const rank = static_cast<std::size_t>(percent * static_cast<double>(last.size()) / 100);
      double const limit = last[std::min(rank, last.size() - 1)];
      ASSERT_EQ(*g.multiplier, norm > limit ? static_cast<float>(limit / norm) : 1.0f)
          << percent << " at step " << step;
    }
  }
}

}  // namespace
