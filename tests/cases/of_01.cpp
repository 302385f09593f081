// OF-01: a CPU Adam took dimension 0 for the element count and updated only that many elements.
// Here: shapes, and every short length with canaries on parameter and gradient, in fp32 and
// quantized.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "support/guarded.hpp"
#include "support/hosts.hpp"

namespace {

TEST(OF_01, a_shape_of_3_by_5_has_15_elements) {
  for (auto const& host : test::all_hosts()) {
    std::vector<float> w(15, 1.0f), g(15, 1.0f);
    memfit::optimizer<memfit::adam, memfit::fp32> opt(
        host.exec, {.lr = 0.1}, std::vector<memfit::tensor_ref<float>>{{w.data(), {3, 5}, "w"}});
    opt.step_one(0, memfit::tensor_ref<float>(g.data(), {3, 5}));
    for (float x : w) EXPECT_NEAR(x, 0.9f, 1e-6) << host.name;
  }
}

template <class Format>
void moves_every_element(std::int64_t n, test::host_case const& host) {
  test::guarded<float> w(std::vector<float>(static_cast<std::size_t>(n), 1.0f), 1);
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0f);
  test::guarded<float> g(values, 2);
  memfit::optimizer<memfit::adam, Format> opt(host.exec, {.lr = 0.1}, std::vector{w.ref("w")},
                                              {.min_quantized = 1});
  opt.step_one(0, g.ref());
  auto const m = opt.moment_sync(0, 0), v = opt.moment_sync(0, 1);
  ASSERT_TRUE(w.intact() && g.intact()) << host.name << " n = " << n;
  ASSERT_EQ(static_cast<std::int64_t>(m.size()), n);
  for (std::int64_t i = 0; i < n; ++i) {
    float const gradient = g[i];
    ASSERT_NEAR(w[i], 0.9f, 1e-6) << host.name << " n = " << n << " element " << i;
    if constexpr (std::is_same_v<Format, memfit::fp32>) {
      auto const k = static_cast<std::size_t>(i);
      ASSERT_NEAR(m[k], 0.1f * gradient, 1e-7f * gradient);
      ASSERT_NEAR(v[k], 0.001f * gradient * gradient, 1e-9f * gradient * gradient);
    }
  }
}

TEST(OF_01, every_short_length_moves_as_a_whole) {
  for (auto const& host : test::all_hosts()) {
    for (std::int64_t n = 1; n <= 67; ++n) {
      moves_every_element<memfit::fp32>(n, host);
      moves_every_element<memfit::float8>(n, host);
    }
    for (std::int64_t n : {127, 128, 129, 130, 255, 256, 257, 1023, 1025}) {
      moves_every_element<memfit::fp32>(n, host);
      moves_every_element<memfit::float8>(n, host);
    }
  }
}

TEST(OF_01, equal_inputs_give_equal_bits_in_body_and_tail) {
  for (auto const& host : test::all_hosts()) {
    std::vector<float> w(131, 0.3f), g(131, 0.7f);
    memfit::optimizer<memfit::adam, memfit::fp32> opt(
        host.exec, {.lr = 0.1, .weight_decay = 0.1},
        std::vector<memfit::tensor_ref<float>>{{w.data(), 131, "w"}});
    for (int step = 0; step < 3; ++step) opt.step_one(0, g);
    for (float x : w) EXPECT_EQ(x, w[0]) << host.name;
  }
}

}  // namespace
