// A tensor type of the user's own, shown to memfit by one specialization, trained with 8-bit AdamW.
#include <memfit/memfit.hpp>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

// What a renderer or a simulator might have: memfit knows nothing of it.
struct grid {
  std::string name;
  int width;
  int height;
  std::vector<float> cells;

  grid(std::string n, int w, int h)
      : name(std::move(n)),
        width(w),
        height(h),
        cells(static_cast<std::size_t>(w) * static_cast<std::size_t>(h)) {}
};

// example-begin tensor
template <>
struct memfit::tensor_traits<grid> {
  static tensor_ref<float> ref(grid& g) { return {g.cells.data(), {g.width, g.height}, g.name}; }
};
// example-end tensor

// Half the squared distance to the target, and its gradient.
static double backward(std::vector<grid> const& model, float target, std::vector<grid>& grads) {
  double loss = 0;
  for (std::size_t t = 0; t < model.size(); ++t) {
    for (std::size_t i = 0; i < model[t].cells.size(); ++i) {
      float const away = model[t].cells[i] - target;
      grads[t].cells[i] = away;
      loss += 0.5 * static_cast<double>(away) * static_cast<double>(away);
    }
  }
  return loss;
}

int main() {
  std::vector<grid> model{{"colour", 120, 67}, {"opacity", 33, 5}};
  std::vector<grid> grads = model;

  double const first = backward(model, 0.5f, grads);

  // example-begin training
  memfit::host exec{};  // all cores; the executor is always the first argument
  memfit::optimizer<memfit::adamw, memfit::float8> opt{exec, {.lr = 1e-2}, model};
  for (int step = 0; step < 100; ++step) {
    backward(model, 0.5f, grads);  // yours
    opt.step(grads);               // one fused pass over parameters, gradients and 8-bit moments
  }
  // example-end training

  double const last = backward(model, 0.5f, grads);
  std::printf("loss %.2f -> %.6f\n%s", first, last, opt.describe().text().c_str());
  return last < 0.01 * first ? 0 : 1;
}
