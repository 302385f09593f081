// LB-11 for moments: each slot, step, tensor and element draws noise of its own, and none that the
// parameter draws. The noise is the same for any division of the work.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "support/hosts.hpp"

namespace {

constexpr float least = 1.0f, next = 1.0f + 0x1p-7f, x = 1.0f + 0x1p-9f;  // P(next) = 1/4
constexpr std::size_t count = std::size_t{1} << 20;

/// Keeps the gradient in both slots, and brings the parameter there.
struct follow {
  static constexpr std::array slots{memfit::slot{"a", memfit::range::any},
                                    memfit::slot{"b", memfit::range::non_negative}};
  struct constants {
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[2]) const {
      s[0] = s[1] = p = g;
    }
  };
  MEMFIT_HD constants at(std::int64_t) const { return {}; }
};
using random_bf16 = memfit::stochastic<memfit::bf16>;

using ups = std::vector<bool>;
template <class Values>
ups ups_of(Values const& values) {
  ups out;
  for (auto v : values) {
    auto const y = static_cast<float>(v);
    EXPECT_TRUE(y == least || y == next) << y;
    out.push_back(y == next);
  }
  return out;
}

/// What is rounded up in tensors A and B after each of two steps: parameter, slot 0 and slot 1.
struct drawn {
  ups of[2][2][3];  // tensor, step, column
  bool operator==(drawn const&) const = default;
};

drawn draw(memfit::host exec, std::size_t n) {
  std::vector<std::vector<memfit::bf16>> const start(2, std::vector<memfit::bf16>(n));
  std::vector<std::vector<float>> const gradients(2, std::vector<float>(n, x));
  auto parameters = start;
  memfit::optimizer<follow, random_bf16, random_bf16> opt{exec, {}, parameters, {.seed = 5}};
  drawn all;
  for (int step = 0; step < 2; ++step) {
    opt.step(gradients);
    for (std::size_t t = 0; t < 2; ++t) {
      all.of[t][step][0] = ups_of(parameters[t]);
      for (int slot = 0; slot < 2; ++slot)
        all.of[t][step][1 + slot] = ups_of(opt.moment_sync(t, slot));
    }
  }
  return all;
}

class lb_11_moments : public testing::Test {
 protected:
  static drawn const& all() {
    static drawn const once = draw(memfit::host{2}, count);
    return once;
  }
  /// The share of 2^20 pairs in which both agree has this expectation where they are independent.
  static void are_independent(ups const& a, ups const& b, char const* what) {
    int same = 0;
    for (std::size_t i = 0; i < count; ++i) same += a[i] == b[i];
    EXPECT_NEAR(same, 655360, 2975) << what;
  }
};

TEST_F(lb_11_moments, a_quarter_is_rounded_up_and_neighbours_at_any_distance_are_independent) {
  for (int column = 0; column < 3; ++column) {
    auto const& up = all().of[0][0][column];
    int sum = 0;
    for (bool u : up) sum += u;
    EXPECT_NEAR(sum, 262144, 2661) << "column " << column;
    for (std::size_t stride : {1u, 2u, 4u, 8u, 16u, 32u, 256u, 1024u, 131072u}) {
      int both = 0;
      for (std::size_t i = 0; i < count; ++i) both += up[i] && up[(i + stride) % count];
      EXPECT_NEAR(both, 65536, 1760) << "column " << column << ", stride " << stride;
    }
  }
}

TEST_F(lb_11_moments, columns_tensors_and_steps_are_independent) {
  auto const& of = all().of;
  are_independent(of[0][0][1], of[0][0][2], "two slots");
  are_independent(of[0][0][0], of[0][0][1], "the parameter and slot 0");
  are_independent(of[0][0][0], of[0][0][2], "the parameter and slot 1");
  for (int column = 0; column < 3; ++column) {
    are_independent(of[0][0][column], of[1][0][column], "two tensors");
    are_independent(of[0][0][column], of[0][1][column], "two steps");
  }
}

TEST_F(lb_11_moments, the_noise_does_not_depend_on_who_does_the_work) {
  constexpr std::size_t several_tasks = 270'003;
  auto const hosts = test::all_hosts();
  auto const first = draw(hosts.front().exec, several_tasks);
  for (auto const& host : hosts) EXPECT_TRUE(draw(host.exec, several_tasks) == first) << host.name;
}

}  // namespace
