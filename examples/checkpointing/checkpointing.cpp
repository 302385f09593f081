// Layers of the user's own, trained within a budget of activation bytes: the runner calls them
// again where the plan says that recomputing is cheaper than keeping, and every bit stays the same.
#include <memfit/memfit.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

static constexpr std::int64_t layers = 32, width = 64, weights = width * width, floats = 16 * width;

// Element i of x W.
static float product(float const* x, std::vector<float> const& w, std::size_t i) {
  float sum = 0;
  for (std::size_t k = 0, row = i / width * width; k < width; ++k)
    sum += x[row + k] * w[k * width + i % width];
  return sum;
}

static void add_back(float const* x, float slope, std::vector<float> const& w, std::size_t i,
                     float* dx, std::vector<float>& dw) {
  for (std::size_t k = 0, row = i / width * width; k < width; ++k) {
    dw[k * width + i % width] += slope * x[row + k];
    dx[row + k] += slope * w[k * width + i % width];
  }
}

// example-begin model
// y = x + tanh(x W) with a W per layer, whose backward reads the tanh.
struct network {
  std::vector<std::vector<float>> w{layers, std::vector<float>(weights)}, dw = w;

  void forward(std::int64_t layer, void const* in, void* out, memfit::checkpoint::context& c) {
    auto const* const x = static_cast<float const*>(in);
    auto* const y = static_cast<float*>(out);  // null: not wanted
    auto* const saved = c.saves() ? c.saved.take<float>(floats) : nullptr;
    for (std::size_t i = 0; i < floats; ++i) {
      float const t = std::tanh(product(x, w[std::size_t(layer)], i));
      if (saved != nullptr) saved[i] = t;
      if (y != nullptr) y[i] = x[i] + t;
    }
  }
  void backward(std::int64_t layer, void const* in, void const*, void* out_gradient,
                void* in_gradient, memfit::checkpoint::context& c) {
    auto const* const dy = static_cast<float const*>(out_gradient);
    auto* const dx = static_cast<float*>(in_gradient);
    auto const* const t = c.saved.take<float>(floats);
    std::copy(dy, dy + floats, dx);
    for (std::size_t i = 0, l = std::size_t(layer); i < floats; ++i)
      add_back(static_cast<float const*>(in), dy[i] * (1 - t[i] * t[i]), w[l], i, dx, dw[l]);
  }
};
// example-end model

// Trains the layers to map waves to zero; returns the last loss.
static double train(network& net, memfit::checkpointed<memfit::host>& run) {
  memfit::optimizer<memfit::adamw, memfit::float8> opt{memfit::host{}, {.lr = 1e-3}, net.w};
  std::vector<float> x(floats), dx(floats);
  for (std::size_t i = 0; i < floats; ++i) x[i] = std::sin(static_cast<float>(i));
  double loss = 0;
  for (int step = 0; step < 60; ++step) {
    for (auto& g : net.dw) g.assign(g.size(), 0);
    loss = 0;
    // example-begin step
    run.forward(net, x.data());
    for (std::size_t i = 0; i < floats; ++i) {
      float const y = static_cast<float const*>(run.output())[i];
      loss += static_cast<double>(y * y) / floats;
      static_cast<float*>(run.output_gradient())[i] = 2 * y / floats;
    }
    run.backward(net, dx.data());  // forwards again where the plan says so, every backward once
    opt.step(net.dw);
    // example-end step
  }
  return loss;
}

int main() {
  network net, same;
  memfit::host const exec{};
  std::vector<float> x(floats), dx(floats);
  // example-begin plan
  memfit::checkpoint::chain stages(layers, {.output = floats * 4, .gradient = floats * 4});
  stages = memfit::checkpoint::profile(exec, net, stages, x.data(), {.input_gradient = dx.data()});
  auto const everything = memfit::checkpoint::keep_all(stages);
  memfit::checkpointed run{exec, stages, memfit::checkpoint::within(stages, everything.peak / 4)};
  // example-end plan
  memfit::checkpointed plain{exec, stages, everything};
  double const loss = train(net, run), expected = train(same, plain);
  auto const bytes = double(run.arena_bytes()), all = double(plain.arena_bytes());
  std::printf("loss %.6f in %.0f bytes of activations, %.6f in %.0f\n", loss, bytes, expected, all);
  return loss < 0.1 && net.w == same.w && bytes <= all / 4 ? 0 : 1;
}
