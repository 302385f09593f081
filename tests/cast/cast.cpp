// Casts: to nearest as one element at a time has it, at random to one of two neighbours and right
// in the mean, the same bits from every host.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/cast.hpp"
#include "memfit/exec/host.hpp"
#include "support/guarded.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::bf16, memfit::fp16;

constexpr std::int64_t counts[] = {0, 1, 15, 16, 17, 33, 1000, 66'001};

/// Values of every kind, and those at which types end.
std::vector<float> values(test::kind kind, std::int64_t count) {
  constexpr float odd[] = {65504,      65519.9f,   65520,        -65504.1f, 0x1p-24f,
                           0x1p-25f,   0x1.8p-25f, 0x1p-14f,     -0.0f,     HUGE_VALF,
                           -HUGE_VALF, NAN,        0x1.fffp-15f, 3.4e38f};
  auto x = test::make_input(kind, count, 7);
  if (count >= 1000)
    for (std::size_t i = 0; i < std::size(odd); ++i) x[i * 61] = odd[i];
  return x;
}

template <class From, class To>
void nearest() {
  for (auto const& host : test::all_hosts())
    for (auto kind : {test::kind::lognormal, test::kind::mixed, test::kind::subnormal})
      for (auto n : counts) {
        if (n > 1000 && kind != test::kind::mixed) continue;
        test::guarded<From> const from(values(kind, n), 1);
        test::guarded<To> to(n, 3);
        memfit::cast(host.exec, const_cast<test::guarded<From>&>(from).ref(), to.ref());
        for (std::int64_t i = 0; i < n; ++i) {
          auto const x = static_cast<float>(const_cast<test::guarded<From>&>(from)[i]);
          auto const got = static_cast<float>(to[i]), want = static_cast<float>(To(x));
          ASSERT_TRUE((got == want && std::signbit(got) == std::signbit(want)) ||
                      (std::isnan(got) && std::isnan(want)))
              << host.name << ' ' << x << " becomes " << got << ", not " << want;
        }
        EXPECT_TRUE(from.intact() && to.intact());
      }
}

TEST(cast, to_nearest_is_that_of_single_elements) {
  nearest<float, fp16>();
  nearest<float, bf16>();
  nearest<fp16, float>();
  nearest<bf16, float>();
  nearest<bf16, fp16>();
  nearest<fp16, bf16>();
}

/// The neighbours of x in a type, below and above in magnitude.
template <class To>
std::pair<float, float> neighbours(float x) {
  auto const at = [](int bits) {
    To t;
    t.bits = static_cast<std::uint16_t>(bits);
    return static_cast<float>(t);
  };
  To near(x);
  int low = near.bits;
  if (std::fabs(at(low)) > std::fabs(x)) --low;
  return {at(low), at(low) == x ? x : at(low + 1)};
}

template <class To>
void at_random() {
  auto const hosts = test::all_hosts();
  auto const from = values(test::kind::mixed, 66'001);
  std::vector<To> first(from.size()), again(from.size());
  memfit::cast_stochastic(hosts[0].exec, from, first, 1);
  for (auto const& host : hosts) {
    memfit::cast_stochastic(host.exec, from, again, 1);
    EXPECT_EQ(test::bytes_of(first), test::bytes_of(again)) << host.name;
  }
  memfit::cast_stochastic(hosts[0].exec, from, again, 2);
  EXPECT_NE(test::bytes_of(first), test::bytes_of(again)) << "another seed";
  float const most = static_cast<float>(std::is_same_v<To, fp16> ? 65504.0 : 0x1.fep127);
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto const x = from[i], got = static_cast<float>(first[i]);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(got));
    } else if (std::fabs(x) > most) {
      EXPECT_TRUE(std::fabs(got) >= most && std::signbit(got) == std::signbit(x)) << x;
    } else {
      auto const [low, high] = neighbours<To>(x);
      ASSERT_TRUE(got == low || got == high) << x << " becomes " << got;
      ASSERT_EQ(std::signbit(got), std::signbit(x));
    }
  }
}

TEST(cast_stochastic, gives_one_of_the_two_neighbours) {
  at_random<bf16>();
  at_random<fp16>();
}

template <class To>
void right_in_the_mean(float x) {
  std::vector<float> const from(20'000, x);
  std::vector<To> to(from.size());
  memfit::cast_stochastic(memfit::host{2}, from, to, 5);
  double sum = 0;
  for (auto t : to) sum += static_cast<double>(static_cast<float>(t));
  auto const [low, high] = neighbours<To>(x);
  // Four standard deviations of the mean, at most half the distance of the neighbours each.
  EXPECT_NEAR(sum / 20'000, static_cast<double>(x),
              0.5 * std::fabs(static_cast<double>(high - low)) * 4 / std::sqrt(20'000.0))
      << x;
}

TEST(cast_stochastic, is_right_in_the_mean) {
  for (float x : {1.001f, -1000.3f, 0.3f}) {
    right_in_the_mean<bf16>(x);
    right_in_the_mean<fp16>(x);
  }
  for (float x : {0x1.3p-24f, 0x1.8p-26f, -0x1.fedp-15f, 0x1.001p-14f}) right_in_the_mean<fp16>(x);
}

TEST(cast, refuses_what_does_not_fit) {
  memfit::host const exec{1};
  std::vector<float> from(4), target(4);
  std::vector<bf16> to(3);
  using memfit::argument_error, memfit::tensor_ref;
  test::expect_refusal<argument_error>([&] { memfit::cast(exec, from, to); },
                                       {"cast", "3 elements", "expected 4"});
  test::expect_refusal<argument_error>(
      [&] {
        memfit::cast(exec, from, tensor_ref<bf16>{nullptr, 4, "half"});
      },
      {"half", "null"});
  test::expect_refusal<argument_error>(
      [&] {
        memfit::cast(exec, tensor_ref<float>{from.data(), 2},
                     tensor_ref<float>{from.data() + 1, 2, "shifted"});
      },
      {"shifted", "overlaps"});
  test::expect_refusal<argument_error>([&] { memfit::cast_stochastic(exec, from, to, 1); },
                                       {"cast_stochastic", "expected 4"});
}

}  // namespace
