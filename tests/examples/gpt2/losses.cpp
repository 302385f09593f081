// The first losses of a tiny network against PyTorch's in float64: forward, backward and AdamW
// together.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <memfit/checkpoint/plan/simple.hpp>

#include "device.hpp"

namespace {

constexpr gpt2::config sizes{.layers = 2, .heads = 2, .channels = 32, .context = 16};
constexpr gpt2::extent shape{.batch = 3, .seq = 12};
constexpr double relative_tolerance = 1e-5;

// The generator of golden/make_losses.py.
class golden_source {
 public:
  int draw() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int>(state_ >> 56);
  }

  void fill(gpt2::tensor<float>& t, float around) {
    for (gpt2::index i = 0; i < t.size(); ++i)
      t[i] = around + static_cast<float>(draw() - 128) / 1024.0F;
  }

 private:
  std::uint64_t state_ = 1;
};

bool is_gain(const gpt2::tensor<float>& t) {
  return t.name().find("ln_") != std::string::npos && t.name().ends_with(".weight");
}

std::vector<double> golden_losses() {
  std::ifstream file(GPT2_GOLDEN "/losses.txt");
  std::vector<double> losses;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with('#')) losses.push_back(std::strtod(line.c_str(), nullptr));
  return losses;
}

TEST(losses, are_those_of_pytorch) {
  golden_source source;
  gpt2::weights<float> parameters{sizes}, gradients{sizes};
  for (auto* t : parameters.all()) source.fill(*t, is_gain(*t) ? 1.0F : 0.0F);
  std::vector<gpt2::token> inputs, targets;
  for (gpt2::index row = 0; row < shape.batch; ++row) {
    std::vector<gpt2::token> text;
    for (gpt2::index i = 0; i <= shape.seq; ++i)
      text.push_back(static_cast<gpt2::token>(source.draw()));
    inputs.insert(inputs.end(), text.begin(), text.end() - 1);
    targets.insert(targets.end(), text.begin() + 1, text.end());
  }

  auto const expected = golden_losses();
  ASSERT_EQ(expected.size(), 20U);
  gpt2::budget uncounted;
  auto const host = gpt2::open_host<float>(2, uncounted);
  auto& on = host->network();
  gpt2::model<float> model{on, sizes, shape, parameters, gradients};
  auto const stages = model.chain();
  auto const run = host->make_runner(stages, memfit::checkpoint::keep_all(stages));
  auto const optimizer = host->make_optimizer({.rule = gpt2::rule_choice::adamw,
                                               .state = gpt2::state_choice::fp32,
                                               .weight_decay = 0.1,
                                               .beta1 = 0.9,
                                               .beta2 = 0.95,
                                               .eps = 1e-8},
                                              parameters);
  auto const update = host->make_update({}, gradients, *optimizer);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    for (auto* g : gradients.all()) on.set_zero(*g);
    run->forward(model, inputs.data(), {});
    double const loss = model.loss(targets.data());
    EXPECT_NEAR(loss, expected[step], relative_tolerance * expected[step]) << "step " << step + 1;
    run->backward(model);
    update->step(2e-3);
  }
}

}  // namespace
