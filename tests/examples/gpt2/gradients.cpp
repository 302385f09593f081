// Every gradient of the network against central differences of its loss, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include <memfit/checkpoint/profile.hpp>
#include <memfit/checkpoint/run.hpp>
#include <memfit/exec/host.hpp>

#include "host_backend.hpp"
#include "model.hpp"
#include "random.hpp"
#include "schedules.hpp"

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
  gpt2::model<double> model{on, sizes, shape, parameters, gradients};
  std::vector<token> inputs, targets;
  std::unique_ptr<memfit::checkpointed<memfit::host>> run;

  explicit network(float dropped_share = 0) {
    gpt2::random_source random{7, 0};
    gpt2::initialize(parameters, 7);
    for (tensor<double>* t : parameters.all())
      std::for_each(t->data(), t->data() + t->size(),
                    [&](double& x) { x += 0.2 * random.normal(); });
    for (gpt2::index i = 0; i < shape.rows(); ++i) {
      inputs.push_back(static_cast<token>(random.bits() % 256));
      targets.push_back(static_cast<token>(random.bits() % 256));
    }
    model.set_batch(shape, dropped_share);
    use(memfit::checkpoint::keep_all(model.chain()));
  }

  void use(const memfit::checkpoint::schedule& plan) {
    run =
        std::make_unique<memfit::checkpointed<memfit::host>>(memfit::host{1}, model.chain(), plan);
  }

  double loss() {
    run->forward(model, inputs.data(), {.seed = 3, .step = 5});
    return model.loss(targets.data());
  }

  double differentiate() {
    double const value = loss();
    run->backward(model);
    return value;
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

// Of a network, and with which share dropped.
class every_tensor : public testing::TestWithParam<std::tuple<std::size_t, float>> {
 protected:
  void SetUp() override {
    net.differentiate();
    parameter = net.parameters.all()[number];
    gradient = net.gradients.all()[number];
    allowed = relative_tolerance * largest(*gradient) + absolute_tolerance;
  }

  std::size_t const number = std::get<0>(GetParam());
  network net{std::get<1>(GetParam())};
  tensor<double>* parameter = nullptr;
  tensor<double>* gradient = nullptr;
  double allowed = 0;
};

TEST_P(every_tensor, entries_match_central_differences) {
  gpt2::random_source random{11, static_cast<gpt2::index>(number)};
  for (int probe = 0; probe < 6; ++probe) {
    auto const i =
        static_cast<gpt2::index>(random.uniform() * static_cast<double>(parameter->size()));
    double const expected = central_difference(net, [&](double h) { (*parameter)[i] += h; });
    EXPECT_NEAR((*gradient)[i], expected, allowed) << parameter->name() << " entry " << i;
  }
}

TEST_P(every_tensor, the_derivative_along_a_random_direction_matches) {
  gpt2::random_source random{13, static_cast<gpt2::index>(number)};
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
                         testing::Combine(testing::Range(std::size_t{0},
                                                         gpt2::weights<double>{sizes}.all().size()),
                                          testing::Values(0.0F, 0.3F)),
                         [](const auto& tested) {
                           auto const number = std::get<0>(tested.param);
                           bool const drops = std::get<1>(tested.param) > 0;
                           auto name = gpt2::weights<double>{sizes}.all()[number]->name();
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name + (drops ? "_with_dropout" : "");
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
  gpt2::model<float> model{on_host, sizes, {shape.batch + 1, sizes.context}, parameters, gradients};
  auto const stages = model.chain();
  memfit::checkpointed run{memfit::host{1}, stages, schedules::of("sqrt", stages)};
  model.set_batch(shape, 0);
  run.forward(model, exact.inputs.data());
  EXPECT_NEAR(model.loss(exact.targets.data()), exact.loss(), 1e-6);
  run.backward(model);

  auto const computed = gradients.all();
  auto const expected = exact.gradients.all();
  for (std::size_t t = 0; t < computed.size(); ++t)
    for (gpt2::index i = 0; i < computed[t]->size(); ++i)
      ASSERT_NEAR((*computed[t])[i], (*expected[t])[i], 2e-5 * largest(*expected[t]) + 1e-7)
          << computed[t]->name() << " entry " << i;
}

// And the loss.
TEST(gradients, have_the_same_bits_under_every_schedule) {
  for (float const share : {0.0F, 0.3F}) {
    network all{share};
    double const loss = all.differentiate();
    auto const expected = all.gradients.all();
    auto const stages = all.model.chain();
    for (auto const& plan : schedules::all(stages)) {
      network other{share};
      other.use(plan);
      EXPECT_EQ(other.run->arena_bytes(), plan.peak);
      EXPECT_EQ(other.differentiate(), loss);
      auto const computed = other.gradients.all();
      for (std::size_t t = 0; t < computed.size(); ++t)
        ASSERT_TRUE(std::equal(computed[t]->data(), computed[t]->data() + computed[t]->size(),
                               expected[t]->data()))
            << computed[t]->name() << " with " << plan.forwards << " forwards";
    }
  }
}

TEST(gradients, differ_between_seeds_steps_and_shares_of_dropout) {
  network net{0.3F};
  auto const loss_with = [&](memfit::checkpoint::noise_seed noise) {
    net.run->forward(net.model, net.inputs.data(), noise);
    return net.model.loss(net.targets.data());
  };
  double const loss = loss_with({.seed = 3, .step = 5});
  EXPECT_EQ(loss_with({.seed = 3, .step = 5}), loss);
  EXPECT_NE(loss_with({.seed = 4, .step = 5}), loss);
  EXPECT_NE(loss_with({.seed = 3, .step = 6}), loss);
  EXPECT_NE(network{0.2F}.loss(), loss);
}

// A stage that takes another number of bytes than its chain says would write beyond its buffers or
// leave some unused.
TEST(gradients, take_the_bytes_that_a_chain_says) {
  for (float const share : {0.0F, 0.3F}) {
    network net{share};
    auto const stages = net.model.chain();
    auto const measured = memfit::checkpoint::profile(memfit::host{1}, net.model, stages,
                                                      net.inputs.data(), {.repetitions = 1});
    for (std::size_t i = 0; i < stages.size(); ++i) {
      EXPECT_EQ(measured[i].scratch, stages[i].scratch) << "stage " << i;
      for (std::size_t v = 0; v < stages[i].variants.size(); ++v) {
        auto const &is = measured[i].variants[v], &said = stages[i].variants[v];
        EXPECT_EQ(is.saved, said.saved) << "stage " << i << " variant " << v;
        EXPECT_EQ(is.forward_scratch, said.forward_scratch) << "stage " << i << " variant " << v;
        EXPECT_EQ(is.backward_scratch, said.backward_scratch) << "stage " << i << " variant " << v;
      }
    }
  }
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
