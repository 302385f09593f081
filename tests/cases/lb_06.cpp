// LB-06: coordinates without gradient drifted or jumped where the second moment decoded to zero.
// Here: both reported inputs, and a gradient of any size that stops, for every quantized format and
// both Adams.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"

namespace {

template <class Rule, class Format>
struct adam_of {
  using optimizer = memfit::optimizer<Rule, Format>;

  static Rule rule() {
    return {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0};
  }
};

template <class T>
class LB_06 : public testing::Test {
 protected:
  void start(std::size_t n) {
    w.assign(n, 0.0f);
    g.assign(n, 0.0f);
    opt.add(w);
  }
  void step() { opt.step_one(0, g); }

  std::vector<float> w, g;
  typename T::optimizer opt{
      memfit::host{1}, T::rule(), std::vector<memfit::tensor_ref<float>>{}, {.min_quantized = 1}};
};

using kinds =
    testing::Types<adam_of<memfit::adam, memfit::dynamic8>,
                   adam_of<memfit::adamw, memfit::dynamic8>, adam_of<memfit::adam, memfit::float8>,
                   adam_of<memfit::adamw, memfit::float8>, adam_of<memfit::adam, memfit::linear8>,
                   adam_of<memfit::adam, memfit::bf16>, adam_of<memfit::adam, memfit::fp16>>;
TYPED_TEST_SUITE(LB_06, kinds);

TYPED_TEST(LB_06, A_an_element_without_gradient_never_moves) {
  this->start(256);
  for (int step = 0; step < 10'000; ++step) {
    for (std::size_t i = 0; i < 256; ++i) this->g[i] = i == 7 ? 0.0f : i % 2 == 0 ? 1.0f : -1.0f;
    this->step();
    std::uint32_t bits;
    std::memcpy(&bits, &this->w[7], sizeof bits);
    ASSERT_EQ(bits, 0u) << "step " << step + 1;
  }
  EXPECT_NE(this->w[6], 0.0f);
}

TYPED_TEST(LB_06, B_a_small_gradient_that_stops_moves_little) {
  this->start(2);
  for (int step = 1; step <= 200; ++step) {
    this->g = {1.0f, step == 1 ? 1e-5f : 0.0f};
    this->step();
    ASSERT_LE(std::fabs(this->w[1]), 0.02f) << "step " << step;
  }
}

TYPED_TEST(LB_06, a_gradient_of_any_size_that_stops_moves_no_step_by_more_than_adam_can) {
  for (float size :
       {1.0f, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-8f, 1e-12f, 1e-20f, 1e-30f}) {
    for (int warm : {0, 100}) {
      SCOPED_TRACE("size " + std::to_string(size) + " after " + std::to_string(warm));
      std::vector<float> moved(3, 0.0f);
      typename TypeParam::optimizer fresh{
          memfit::host{1},
          TypeParam::rule(),
          std::vector<memfit::tensor_ref<float>>{{moved.data(), 3, "w"}},
          {.min_quantized = 1}};
      for (int step = 1; step <= 10'000; ++step) {
        float const before = moved[1];
        fresh.step_one(
            0, std::vector{1.0f, step == warm + 1 ? size : 0.0f, step % 7 == 0 ? -0.5f : 0.5f});
        // Exact Adam moves at most lr (1 - beta1) / sqrt(1 - beta2) = 3.2 lr in a step.
        ASSERT_LE(std::fabs(moved[1] - before), 4e-3f) << "step " << step;
      }
    }
  }
}

TYPED_TEST(LB_06, a_gradient_of_any_size_that_stops_does_not_go_on_to_drift) {
  for (float size : {1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-8f}) {
    SCOPED_TRACE(size);
    std::vector<float> moved(2, 0.0f);
    typename TypeParam::optimizer fresh{
        memfit::host{1},
        TypeParam::rule(),
        std::vector<memfit::tensor_ref<float>>{{moved.data(), 2, "w"}},
        {.min_quantized = 1}};
    for (int step = 1; step <= 10'000; ++step)
      fresh.step_one(0, std::vector{1.0f, step == 1 ? size : 0.0f});
    // Exact Adam comes to rest at -0.006.
    EXPECT_LE(std::fabs(moved[1]), 0.02f);
  }
}

}  // namespace
