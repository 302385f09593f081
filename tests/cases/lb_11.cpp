// LB-11: elements, tensors and steps shared the random numbers of stochastic rounding. Here: the
// reported input, everywhere that memfit rounds at random: parameters of 16 and 24 bits, sums of
// gradients and casts.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/cast.hpp"
#include "memfit/rule/momentum.hpp"
#include "memfit/step.hpp"
#include "support/hosts.hpp"

namespace {

using memfit::bf16, memfit::corrected, memfit::stochastic;

constexpr std::size_t count = 1 << 20;
constexpr std::uint64_t seed = 5;
constexpr float quarter = 0x1p-9f;  // of the way from 1 to the next bf16

using ups = std::vector<unsigned char>;

ups above_one(std::vector<bf16> const& values) {
  ups up;
  for (auto x : values) {
    EXPECT_TRUE(x.bits == 0x3f80u || x.bits == 0x3f81u);
    up.push_back(x.bits == 0x3f81u);
  }
  return up;
}

/// A and B in one step, A in the next.
void share_no_random_numbers(ups const& a, ups const& b, ups const& next) {
  for (auto const* all : {&a, &b, &next}) {
    int n = 0;
    for (auto up : *all) n += up;
    EXPECT_NEAR(n, 262144, 2661);
    for (std::size_t stride : {1u, 2u, 4u, 8u, 32u, 256u, 1024u}) {
      int both = 0;
      for (std::size_t i = 0; i + stride < count; ++i) both += (*all)[i] & (*all)[i + stride];
      EXPECT_NEAR(both, 65536, 1760) << "stride " << stride;
    }
  }
  for (auto const* other : {&b, &next}) {
    int agree = 0;
    for (std::size_t i = 0; i < count; ++i) agree += a[i] == (*other)[i];
    EXPECT_NEAR(agree, 655360, 2975);
  }
}

/// round(exec, tensor, step) gives the ups of one tensor in one step.
template <class Round>
void rounds_independently(Round const& round) {
  memfit::host const exec{2};
  auto const a = round(exec, 0, 1);
  share_no_random_numbers(a, round(exec, 1, 1), round(exec, 0, 2));
  for (auto const& host : test::all_hosts())
    EXPECT_TRUE(round(host.exec, 0, 1) == a) << host.name << " rounds otherwise";
}

TEST(LB_11, parameters_of_16_bits) {
  std::vector<bf16> const g(count, bf16(-quarter));
  rounds_independently([&](memfit::host const& exec, std::int64_t tensor, std::int64_t step) {
    std::vector<bf16> p(count, bf16(1.0f));
    memfit::step<memfit::fp32, stochastic<bf16>>(exec, memfit::sgd{.lr = 1}, step, p, g, {}, {},
                                                 nullptr, seed, tensor);
    return above_one(p);
  });
}

TEST(LB_11, parameters_of_24_bits) {
  std::vector<bf16> const g(count, bf16(-quarter / 256));
  rounds_independently([&](memfit::host const& exec, std::int64_t tensor, std::int64_t step) {
    std::vector<bf16> p(count, bf16(1.0f));
    ups kept(count, 0);
    memfit::step<memfit::fp32, stochastic<corrected<bf16>>>(exec, memfit::sgd{.lr = 1}, step, p, g,
                                                            {}, {}, kept.data(), seed, tensor);
    for (auto x : p) EXPECT_EQ(x.bits, 0x3f80u);
    for (auto up : kept) EXPECT_LE(up, 1);
    return kept;
  });
}

TEST(LB_11, sums_of_gradients) {
  std::vector<std::vector<float>> const g(2, std::vector<float>(count, 1 + quarter));
  rounds_independently([&](memfit::host const& exec, std::size_t tensor, std::int64_t step) {
    memfit::gradient_accumulator<stochastic<bf16>> sums(exec, g, {.seed = seed});
    for (std::int64_t i = 0; i < step; ++i) {
      sums.add(g, 1);
      sums.close();
    }
    auto const s = sums.sums(tensor);
    return above_one({s.data, s.data + s.count});
  });
}

TEST(LB_11, casts) {
  std::vector<float> const x(count, 1 + quarter);
  // Casts know no tensors and steps: their seeds are those of both.
  rounds_independently([&](memfit::host const& exec, std::uint64_t tensor, std::uint64_t step) {
    std::vector<bf16> to(count);
    memfit::cast_stochastic(exec, x, to, 2 * step + tensor);
    return above_one(to);
  });
}

}  // namespace
