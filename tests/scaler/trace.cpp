// PyTorch's GradScaler, step for step, from golden/scaler.txt: scale, growth tracker, and which of
// two optimizers that share the scaler stepped.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/gradients.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/scaler.hpp"

namespace {

struct traced_step {
  std::string overflows, stepped;
  float scale = 0;
  int tracker = 0;
};
struct traced_case {
  memfit::loss_scaler_options options;
  int tracker = 0;
  std::vector<traced_step> steps;
};

std::vector<traced_case> traced_cases() {
  std::ifstream file(MEMFIT_TEST_GOLDEN "/scaler.txt");
  std::vector<traced_case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    if (line.starts_with("case")) {
      traced_case c;
      std::string word;
      in >> word >> c.options.initial >> c.options.growth >> c.options.backoff >>
          c.options.interval >> c.tracker;
      cases.push_back(c);
    } else if (!line.starts_with("#")) {
      traced_step s;
      in >> s.overflows >> s.stepped >> s.scale >> s.tracker;
      cases.back().steps.push_back(s);
    }
  }
  return cases;
}

/// An optimizer with one tensor, and its gradient's norm.
class trained {
 public:
  explicit trained(memfit::host const& exec)
      : optimizer_(exec, memfit::sgd{.lr = 1}, parameters_), norm_(exec, parameters_) {}

  memfit::gate unscale(memfit::loss_scaler& scaler, bool overflow) {
    gradients_[0] = std::vector<float>(3, *scaler.scale());
    if (overflow) gradients_[0][1] = INFINITY;
    return scaler.unscale(norm_(gradients_));
  }
  /// Whether the step moved the parameters, each by one.
  bool step(memfit::gate const& g) {
    auto const before = parameters_[0];
    optimizer_.step(gradients_, g);
    if (parameters_[0] == before) return false;
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(parameters_[0][i], before[i] - 1);
    return true;
  }

 private:
  std::vector<std::vector<float>> parameters_{{0, 0, 0}}, gradients_{{0, 0, 0}};
  memfit::optimizer<memfit::sgd, memfit::fp32> optimizer_;
  memfit::global_norm norm_;
};

TEST(loss_scaler, three_hundred_steps_are_those_of_grad_scaler) {
  auto const cases = traced_cases();
  ASSERT_EQ(cases.size(), 4u);
  memfit::host const exec{1};
  for (auto const& c : cases) {
    SCOPED_TRACE("interval " + std::to_string(c.options.interval));
    ASSERT_EQ(c.steps.size(), 300u);
    memfit::loss_scaler scaler(exec, c.options);
    scaler.load({c.options, c.options.initial, c.tracker, 1, 0});
    trained first(exec), second(exec);
    std::int64_t skipped = 0;
    for (std::size_t i = 0; i < c.steps.size(); ++i) {
      SCOPED_TRACE(i);
      auto const& expected = c.steps[i];
      bool const overflows[] = {expected.overflows[0] == '1', expected.overflows[1] == '1'};
      auto const a = first.unscale(scaler, overflows[0]);
      auto const b = second.unscale(scaler, overflows[1]);
      // A product with the inverse of a scale that is no power of two may not be 1.
      if (c.options.growth == 2) {
        EXPECT_EQ(first.step(a), expected.stepped[0] == '1');
        EXPECT_EQ(second.step(b), expected.stepped[1] == '1');
      } else {
        a.mark_stepped();
        b.mark_stepped();
      }
      scaler.update();
      skipped += overflows[0] || overflows[1] ? 1 : 0;
      auto const now = scaler.state_sync();
      ASSERT_EQ(now.scale, expected.scale);
      ASSERT_EQ(now.clean, expected.tracker);
    }
    EXPECT_EQ(scaler.skipped_sync(), skipped);
  }
}

}  // namespace
