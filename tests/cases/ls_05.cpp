// LS-05: an optimizer that can skip steps lost count of them: no bias correction, or one for steps
// that were never taken.
// Here: the counter lives beside the flag and counts exactly the steps that were taken.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/gradients.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/scaler.hpp"

namespace {

using vectors = std::vector<std::vector<float>>;

template <class Format>
class trained {
 public:
  /// One call with gradient 1, or with an infinite one.
  void call(bool overflow) {
    gradients_[0][0] = overflow ? HUGE_VALF : *scaler_.scale();
    auto const g = scaler_.unscale(norm_(gradients_));
    optimizer_.step(gradients_, g);
    scaler_.update(g);
  }
  float parameter() const { return parameters_[0][0]; }
  std::int64_t steps() const { return *optimizer_.steps(0); }
  std::vector<float> moments() const {
    return {optimizer_.moment_sync(0, 0)[0], optimizer_.moment_sync(0, 1)[0]};
  }

 private:
  memfit::host exec_{1};
  vectors parameters_{{0}}, gradients_{{0}};
  memfit::optimizer<memfit::adam, Format> optimizer_{
      exec_,
      memfit::adam{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
      parameters_,
      {.min_quantized = 1}};
  memfit::global_norm norm_{exec_, gradients_};
  memfit::loss_scaler scaler_{exec_};
};

template <class Format>
void counts_the_steps_taken() {
  trained<Format> once, ten, skipping, nine;
  once.call(false);
  EXPECT_NEAR(once.parameter(), -0.001f, 1e-9f);
  for (int i = 1; i <= 10; ++i) {
    ten.call(false);
    skipping.call(i == 3);
    if (i < 10) nine.call(false);
  }
  EXPECT_NEAR(ten.parameter(), -0.01f, 1e-8f);
  EXPECT_EQ(ten.steps(), 10);
  EXPECT_NEAR(skipping.parameter(), -0.009f, 1e-8f);
  EXPECT_EQ(skipping.steps(), 9) << "what a schedule on the device reads";
  EXPECT_EQ(skipping.parameter(), nine.parameter());
  EXPECT_EQ(skipping.moments(), nine.moments());
}

TEST(ls_05, counts_the_steps_taken) {
  counts_the_steps_taken<memfit::fp32>();
  counts_the_steps_taken<memfit::float8>();
}

}  // namespace
