// LB-03: lengths that are odd or no multiple of the block size lost or mis-scaled their tail.
// Here: every length up to a few blocks, with canaries, and full blocks that do not see their tail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/quantize.hpp"
#include "support/guarded.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"

namespace {

using memfit::blocked, memfit::dynamic8, memfit::float8, memfit::linear8;

struct outcome {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales, decoded;
};

/// Quantizes and dequantizes between canaries.
template <class Format>
outcome through(memfit::host const& exec, std::vector<float> const& x) {
  test::guarded<float> in(x, 1);
  test::guarded<std::uint8_t> codes(in.count(), 1);
  test::guarded<float> scales(memfit::block_count<Format>(in.count()), 1), out(in.count(), 1);
  memfit::quantize<Format>(exec, in.ref(), codes.ref(), scales.ref());
  memfit::dequantize<Format>(exec, codes.ref(), scales.ref(), out.ref());
  EXPECT_TRUE(in.intact() && codes.intact() && scales.intact() && out.intact());
  auto const floats = [](test::guarded<float>& g) {
    return std::vector<float>(g.data(), g.data() + g.count());
  };
  return {codes.snapshot(), floats(scales), floats(out)};
}

std::vector<float> ones_then(std::size_t ones, std::vector<float> const& rest) {
  std::vector<float> x(ones, 1.0f);
  x.insert(x.end(), rest.begin(), rest.end());
  return x;
}

template <class Format>
void comes_back(memfit::host const& exec, std::vector<float> const& x,
                std::vector<float> const& scales) {
  auto const got = through<Format>(exec, x);
  EXPECT_EQ(got.scales, scales);
  EXPECT_EQ(got.decoded, x);
}

template <class Format>
class LB_03 : public testing::Test {};
using formats = testing::Types<dynamic8, linear8, float8>;
TYPED_TEST_SUITE(LB_03, formats);

TYPED_TEST(LB_03, the_reported_inputs) {
  for (auto const& host : test::all_hosts()) {
    SCOPED_TRACE(host.name);
    using in32 = blocked<TypeParam, 32>;
    comes_back<in32>(host.exec, ones_then(64, {4, 0, 4}), {1, 1, 4});
    comes_back<in32>(host.exec, {3}, {3});
    comes_back<in32>(host.exec, ones_then(31, {}), {1});
    comes_back<in32>(host.exec, ones_then(32, {5}), {1, 5});
    comes_back<TypeParam>(host.exec, ones_then(256, {5}), {1, 5});
    comes_back<TypeParam>(host.exec, {3}, {3});
    comes_back<TypeParam>(host.exec, {}, {});
  }
}

template <class Format>
void every_length(std::size_t block) {
  auto const x = test::make_input(test::kind::normal, 600, 1);
  auto const hosts = test::all_hosts();
  auto const longest = through<Format>(hosts.front().exec, x);
  for (std::size_t n = 0; n <= 600; ++n) {
    std::vector<float> const start(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n));
    auto const got = through<Format>(hosts[n % hosts.size()].exec, start);
    ASSERT_EQ(got.scales.size(), (n + block - 1) / block);
    for (std::size_t b = 0; b < got.scales.size(); ++b) {
      float largest = 0;
      for (auto i = b * block; i < std::min(n, (b + 1) * block); ++i)
        largest = std::max(largest, std::fabs(x[i]));
      ASSERT_EQ(got.scales[b], largest) << "n = " << n << ", block " << b;
    }
    auto const full = n / block * block;
    ASSERT_TRUE(std::equal(got.codes.begin(), got.codes.begin() + static_cast<std::ptrdiff_t>(full),
                           longest.codes.begin()))
        << "n = " << n << ": the tail changed a full block";
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_NEAR(got.decoded[i], x[i], got.scales[i / block] / 15)
          << "n = " << n << ", element " << i;
  }
}

TYPED_TEST(LB_03, every_length_up_to_600) {
  every_length<TypeParam>(256);
  every_length<blocked<TypeParam, 32>>(32);
}

}  // namespace
