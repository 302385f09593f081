// A deep linear network whose layers share the memory of one gradient, trained in micro-batches.
#include <memfit/memfit.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

static constexpr std::size_t layers = 6, width = 8192;

// Each layer multiplies element by element.
struct network {
  std::array<std::vector<float>, layers> weights;
  std::array<std::vector<float>, layers + 1> activations;
};

// The loss that brings the product of all weights to `target`.
static double forward(network& net, std::vector<float> const& input, float target) {
  net.activations[0] = input;
  for (std::size_t l = 0; l < layers; ++l) {
    net.activations[l + 1].resize(width);
    for (std::size_t i = 0; i < width; ++i)
      net.activations[l + 1][i] = net.activations[l][i] * net.weights[l][i];
  }
  double loss = 0;
  for (std::size_t i = 0; i < width; ++i) {
    auto const away = static_cast<double>(net.activations[layers][i] - target * input[i]);
    loss += 0.5 * away * away / width;
  }
  return loss;
}

// Backward through one layer: the gradient of its weights, and in `d` that of its input.
static void backward(network const& net, std::size_t l, std::vector<float>& d,
                     std::vector<float>& gradient) {
  for (std::size_t i = 0; i < width; ++i) {
    gradient[i] = d[i] * net.activations[l][i];
    d[i] *= net.weights[l][i];
  }
}

int main() {
  network net;
  for (auto& w : net.weights) w.assign(width, 1.0f);
  std::vector<std::vector<float>> inputs(2, std::vector<float>(width));
  for (std::size_t i = 0; i < width; ++i) {
    inputs[0][i] = 1.0f + 0.5f * std::sin(static_cast<float>(i));
    inputs[1][i] = 1.0f + 0.5f * std::cos(static_cast<float>(i));
  }
  constexpr float target = 3;
  std::vector<float> d(width), gradient(width);  // one gradient for all layers
  double const before = forward(net, inputs[0], target);

  std::vector<memfit::tensor_ref<float>> parameters;
  for (auto& w : net.weights) parameters.push_back({w.data(), {width}});
  std::array const of_layer{memfit::tensor_ref<float>{gradient.data(), {width}}};
  memfit::host const exec{};
  // example-begin release
  memfit::optimizer<memfit::adamw> opt{exec, {.lr = 1e-2}, parameters};
  memfit::gradient_release release{exec, opt, {.clip_norm = 100}};
  for (int step = 0; step < 100; ++step) {
    release.begin_folded(2);  // items in this window; begin() for a single micro-batch
    for (auto const& input : inputs) {
      release.micro_batch(1);       // one of them
      forward(net, input, target);  // yours, as is backward
      for (std::size_t i = 0; i < width; ++i) d[i] = net.activations[layers][i] - target * input[i];
      for (std::size_t l = layers; l-- > 0;) {
        backward(net, l, d, gradient);
        release.complete(l, of_layer);  // steps layer l; its gradient's memory is the next one's
      }
    }
    release.finish();
  }
  // example-end release
  double const after = forward(net, inputs[0], target);
  std::printf("loss %.3f -> %.6f with one gradient for %zu layers\n", before, after, layers);
  return after < 0.01 * before ? 0 : 1;
}
