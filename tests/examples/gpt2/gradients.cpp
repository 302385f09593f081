// Every gradient of the network against central differences of its loss, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "host_backend.hpp"
#include "model.hpp"
#include "random.hpp"

namespace {

using gpt2::extent;
using gpt2::tensor;
using gpt2::token;

constexpr gpt2::config sizes{
    .layers = 2, .heads = 2, .channels = 12, .context = 9, .vocabulary = 256};
constexpr extent shape{.batch = 3, .seq = 7};

// Entries may differ by this share of the tensor's largest gradient, and by what the loss's own
// rounding makes of the difference quotient.
constexpr double relative_tolerance = 1e-6;
constexpr double absolute_tolerance = 1e-9;

// A network away from the symmetries of its initial state: no gain is 1, no bias is 0.
struct network {
  gpt2::host_backend<double> on{1};
  gpt2::weights<double> parameters{sizes}, gradients{sizes};
  gpt2::activations<double> act{sizes, shape};
  gpt2::workspace<double> space{sizes, shape};
  std::vector<token> inputs, targets;

  network() {
    gpt2::random_source random{7, 0};
    gpt2::initialize(parameters, 7);
    for (tensor<double>* t : parameters.all())
      std::for_each(t->data(), t->data() + t->size(),
                    [&](double& x) { x += 0.2 * random.normal(); });
    for (gpt2::index i = 0; i < shape.rows(); ++i) {
      inputs.push_back(static_cast<token>(random.bits()));
      targets.push_back(static_cast<token>(random.bits()));
    }
  }

  double loss() {
    gpt2::forward(on, sizes, shape, inputs.data(), parameters, act);
    return gpt2::loss(on, shape, targets.data(), act);
  }

  void differentiate() {
    loss();
    gpt2::backward(on, sizes, shape, inputs.data(), parameters, act, gradients, space);
  }
};

// The derivative of the loss where `move(h)` moves the parameters by h times a direction.
template <class Move>
double central_difference(network& net, Move move) {
  constexpr double h = 1e-5;
  move(h);
  double const above = net.loss();
  move(-2 * h);
  double const below = net.loss();
  move(h);
  return (above - below) / (2 * h);
}

double largest(const tensor<double>& t) {
  return std::abs(*std::max_element(t.data(), t.data() + t.size(),
                                    [](double a, double b) { return std::abs(a) < std::abs(b); }));
}

class every_tensor : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    net.differentiate();
    parameter = net.parameters.all()[GetParam()];
    gradient = net.gradients.all()[GetParam()];
    allowed = relative_tolerance * largest(*gradient) + absolute_tolerance;
  }

  network net;
  tensor<double>* parameter = nullptr;
  tensor<double>* gradient = nullptr;
  double allowed = 0;
};

TEST_P(every_tensor, entries_match_central_differences) {
  gpt2::random_source random{11, static_cast<gpt2::index>(GetParam())};
  for (int probe = 0; probe < 6; ++probe) {
    auto const i =
        static_cast<gpt2::index>(random.uniform() * static_cast<double>(parameter->size()));
    double const expected = central_difference(net, [&](double h) { (*parameter)[i] += h; });
    EXPECT_NEAR((*gradient)[i], expected, allowed) << parameter->name() << " entry " << i;
  }
}

TEST_P(every_tensor, the_derivative_along_a_random_direction_matches) {
  gpt2::random_source random{13, static_cast<gpt2::index>(GetParam())};
  std::vector<double> direction(static_cast<std::size_t>(parameter->size()));
  double length = 0;
  for (double& d : direction) {
    d = random.normal();
    length += d * d;
  }
  double along = 0;
  for (std::size_t i = 0; i < direction.size(); ++i) {
    direction[i] /= std::sqrt(length);
    along += direction[i] * gradient->data()[i];
  }
  double const expected = central_difference(net, [&](double h) {
    for (std::size_t i = 0; i < direction.size(); ++i) parameter->data()[i] += h * direction[i];
  });
  EXPECT_NEAR(along, expected, allowed) << parameter->name();
}

INSTANTIATE_TEST_SUITE_P(gpt2, every_tensor,
                         testing::Range(std::size_t{0}, gpt2::weights<double>{sizes}.all().size()),
                         [](const auto& tested) {
                           auto name = gpt2::weights<double>{sizes}.all()[tested.param]->name();
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(gradients, in_float_are_those_in_double) {
  network exact;
  exact.differentiate();

  gpt2::host_backend<float> on_host{1};
  gpt2::weights<float> parameters{sizes}, gradients{sizes};
  auto const from = exact.parameters.all();
  auto const to = parameters.all();
  for (std::size_t t = 0; t < to.size(); ++t)
    std::transform(from[t]->data(), from[t]->data() + from[t]->size(), to[t]->data(),
                   [](double x) { return static_cast<float>(x); });
  // Made for a larger batch than the one that runs.
  gpt2::activations<float> act{sizes, {shape.batch + 1, sizes.context}};
  gpt2::workspace<float> space{sizes, {shape.batch + 1, sizes.context}};
  gpt2::forward(on_host, sizes, shape, exact.inputs.data(), parameters, act);
  EXPECT_NEAR(gpt2::loss(on_host, shape, exact.targets.data(), act), exact.loss(), 1e-6);
  gpt2::backward(on_host, sizes, shape, exact.inputs.data(), parameters, act, gradients, space);

  auto const computed = gradients.all();
  auto const expected = exact.gradients.all();
  for (std::size_t t = 0; t < computed.size(); ++t)
    for (gpt2::index i = 0; i < computed[t]->size(); ++i)
      ASSERT_NEAR((*computed[t])[i], (*expected[t])[i], 2e-5 * largest(*expected[t]) + 1e-7)
          << computed[t]->name() << " entry " << i;
}

TEST(gradients, of_two_backward_passes_add_up) {
  network once;
  network twice;
  once.differentiate();
  twice.differentiate();
  twice.differentiate();
  auto const single = once.gradients.all();
  auto const sum = twice.gradients.all();
  for (std::size_t t = 0; t < single.size(); ++t)
    for (gpt2::index i = 0; i < single[t]->size(); ++i)
      ASSERT_NEAR((*sum[t])[i], 2 * (*single[t])[i], 1e-12) << single[t]->name();
}

}  // namespace
