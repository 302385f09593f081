// The maximum of AMSGrad is requantized at every step, and must neither creep upwards nor sink.
// Constant gradients for long, and elements whose gradient has stopped while others' grow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "optimizer/model.hpp"
#include "support/pace.hpp"

namespace {

constexpr std::size_t count = 256;  // one block

/// From how many elements on moments have the optimizer's format.
constexpr std::int64_t always = 1, never = count + 1;

/// Largest distance between neighbouring values, relative to the larger one, above 2^-7.
template <class Format>
double coarsest() {
  using codec = memfit::codec_for<Format, memfit::range::non_negative>;
  double widest = 0;
  for (std::uint32_t c = 1; c < 256; ++c) {
    double const low = codec::decode(c - 1), high = codec::decode(c);
    if (high >= 0x1p-7 && high <= 1) widest = std::max(widest, 1 - low / high);
  }
  return widest;
}

template <class Format>
std::vector<float> maxima(test::model<memfit::amsgradw, Format>& m, std::vector<float> const& g) {
  m.optimizer().step(test::vectors{g});
  return m.optimizer().moment_sync(0, 2);
}

template <class Format>
void constant_gradients_rest(std::int64_t quantized) {
  memfit::amsgradw const rule{.lr = 1e-3, .beta2 = 0.95};
  test::model<memfit::amsgradw, Format> m(memfit::host{1}, rule, {std::vector<float>(count, 0.0f)},
                                          quantized);
  std::vector<float> g(count), rested;
  // Squares from 1 / 16 to 1, most of them between two codes.
  for (std::size_t i = 0; i < count; ++i) g[i] = 1.0f - 0.75f * static_cast<float>(i) / count;
  for (int step = 1; step <= (test::slow_build ? 2000 : 10'000); ++step) {
    auto const now = maxima<Format>(m, g);
    if (step == 1000) rested = now;
    if (step > 1000) {
      ASSERT_EQ(now, rested) << "step " << step;
    }
  }
  double const apart = quantized == never ? 1e-5 : coarsest<Format>();
  for (std::size_t i = 0; i < count; ++i) {
    double const exact = double{g[i]} * double{g[i]};
    EXPECT_NEAR(rested[i], exact, apart * exact) << "element " << i;
  }
}

TEST(maxima, rest_where_gradients_are_constant) {
  constant_gradients_rest<memfit::float8>(never);
}
TEST(maxima, rest_where_gradients_are_constant_in_float8) {
  constant_gradients_rest<memfit::float8>(always);
}
TEST(maxima, rest_where_gradients_are_constant_in_dynamic8) {
  constant_gradients_rest<memfit::dynamic8>(always);
}

/// The second half of a block has gradients in the first steps only, the first half's second
/// moments grow a hundredfold, slowly.
template <class Format>
double farthest_from_where_it_stopped(std::int64_t quantized) {
  memfit::amsgradw const rule{.lr = 1e-3, .beta2 = 0.999};
  test::model<memfit::amsgradw, Format> m(memfit::host{1}, rule, {std::vector<float>(count, 0.0f)},
                                          quantized);
  std::vector<float> stopped;
  double farthest = 1;
  for (int step = 1; step <= 2000; ++step) {
    std::vector<float> g(count, 1.0f);
    for (std::size_t i = count / 2; i < count; ++i)
      g[i] = step <= 20 ? 1.0f - 0.5f * static_cast<float>(i) / count : 0.0f;
    auto const now = maxima<Format>(m, g);
    if (step == 20) stopped = now;
    for (std::size_t i = count / 2; i < count && step > 20; ++i) {
      double const ratio = double{now[i]} / double{stopped[i]};
      farthest = std::max(farthest, std::max(ratio, 1 / ratio));
    }
  }
  EXPECT_GT(m.optimizer().moment_sync(0, 2)[0] / stopped[0], 40) << "nothing has grown";
  return farthest;
}

TEST(maxima, stay_while_the_largest_of_their_block_grows) {
  EXPECT_EQ(farthest_from_where_it_stopped<memfit::float8>(never), 1.0);
  EXPECT_EQ(farthest_from_where_it_stopped<memfit::float8>(always), 1.0);
  EXPECT_LE(farthest_from_where_it_stopped<memfit::dynamic8>(always), 1.2);
}

}  // namespace
