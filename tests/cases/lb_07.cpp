// LB-07: a size threshold and a per-parameter override were silently ignored.
// Here: the boundary at every threshold, the bytes, and overrides before and after registration.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"

namespace {

using optimizer8 = memfit::optimizer<memfit::adam, memfit::dynamic8>;
using refs = std::vector<memfit::tensor_ref<float>>;

TEST(LB_07, n_at_the_threshold_is_quantized_and_below_it_is_not) {
  for (std::int64_t threshold : {1, 2, 1000, 4096, 16384}) {
    std::vector<float> below(static_cast<std::size_t>(threshold - 1)),
        at(static_cast<std::size_t>(threshold));
    optimizer8 opt(memfit::host{1}, {},
                   refs{{below.data(), threshold - 1, "below"}, {at.data(), threshold, "at"}},
                   {.min_quantized = threshold});
    auto const report = opt.describe();
    EXPECT_FALSE(report.tensors[0].quantized) << threshold;
    EXPECT_TRUE(report.tensors[1].quantized) << threshold;
    EXPECT_EQ(report.tensors[0].state_bytes, 2 * 4 * (threshold - 1));
    EXPECT_EQ(report.tensors[1].state_bytes, 2 * (threshold + 4 * ((threshold + 255) / 256)));
  }
}

TEST(LB_07, state_bytes_of_4095_elements) {
  std::vector<float> w(4095);
  refs const tensors{{w.data(), 4095, "w"}};
  EXPECT_EQ(optimizer8(memfit::host{1}, {}, tensors, {.min_quantized = 1}).describe().state_bytes,
            8318);
  EXPECT_EQ(
      optimizer8(memfit::host{1}, {}, tensors, {.min_quantized = 4096}).describe().state_bytes,
      32760);
}

enum class when { in_options, before_registration, after_registration };

void overrides_q(when moment) {
  auto const start = test::make_input(test::kind::normal, 5000, 1);
  auto const gradient = test::make_input(test::kind::normal, 5000, 2);
  auto p = start, q = start, plain = start;
  memfit::tensor_ref<float> const p_ref{p.data(), 5000, "p"}, q_ref{q.data(), 5000, "q"};
  memfit::adam const rule{.lr = 0.01, .weight_decay = 0.1};
  optimizer8 opt = [&]() -> optimizer8 {
    if (moment == when::in_options)
      return {memfit::host{1}, rule, refs{p_ref, q_ref}, {.keep_fp32 = {"q"}}};
    optimizer8 made(memfit::host{1}, rule, refs{p_ref});
    if (moment == when::before_registration) made.keep_fp32("q");
    made.add(q_ref);
    if (moment == when::after_registration) made.keep_fp32("q");
    return made;
  }();
  auto const report = opt.describe();
  EXPECT_TRUE(report.tensors[0].quantized);
  EXPECT_FALSE(report.tensors[1].quantized);
  EXPECT_EQ(report.tensors[1].state_bytes, 2 * 4 * 5000);

  memfit::optimizer<memfit::adam, memfit::fp32> reference(memfit::host{1}, rule,
                                                          refs{{plain.data(), 5000, "plain"}});
  for (int step = 0; step < 3; ++step) {
    opt.step(std::vector<std::vector<float>>{gradient, gradient});
    reference.step(std::vector<std::vector<float>>{gradient});
  }
  EXPECT_EQ(test::bytes_of(q), test::bytes_of(plain));
  EXPECT_NE(test::bytes_of(p), test::bytes_of(plain));
  EXPECT_EQ(opt.moment_sync(1, 0), reference.moment_sync(0, 0));
  EXPECT_EQ(opt.moment_sync(1, 1), reference.moment_sync(0, 1));
}

TEST(LB_07, an_override_in_the_options) {
  overrides_q(when::in_options);
}
TEST(LB_07, an_override_before_registration) {
  overrides_q(when::before_registration);
}
TEST(LB_07, an_override_after_registration) {
  overrides_q(when::after_registration);
}

}  // namespace
