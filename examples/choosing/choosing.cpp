// Groups of hyper-parameters, a frozen tensor, and an optimizer that is chosen at run time.
#include <memfit/memfit.hpp>
#include <memfit/registry.hpp>

#include <cstdio>
#include <string>
#include <vector>

using tensors = std::vector<memfit::tensor_ref<float>>;

// Three tensors of a model, and their gradients.
struct network {
  std::vector<float> wte = std::vector<float>(20'000, 1.0f), bias = std::vector<float>(200, 1.0f),
                     head = std::vector<float>(5'000, -1.0f);
  tensors list() {
    return {{wte.data(), std::ssize(wte), "wte.weight"},
            {bias.data(), std::ssize(bias), "ln.bias"},
            {head.data(), std::ssize(head), "head.weight"}};
  }
};

// Half the squared distance to zero, and its gradient.
static double backward(tensors const& model, tensors const& grads) {
  double loss = 0;
  for (std::size_t t = 0; t < model.size(); ++t)
    for (std::int64_t i = 0; i < model[t].count; ++i) {
      float const x = grads[t].data[i] = model[t].data[i];
      loss += 0.5 * static_cast<double>(x * x);
    }
  return loss;
}

static double train_in_groups() {
  network parameters, gradients;
  tensors const model = parameters.list(), grads = gradients.list();
  memfit::host exec{};
  // example-begin groups
  memfit::optimizer<memfit::adamw, memfit::float8> opt{
      exec, {.lr = 0.05}, model, {.keep_fp32 = {"head*"}}};
  auto const no_decay = opt.add_group({"*bias", "ln*"}, [](auto& r) { r.weight_decay = 0; });
  opt.freeze("wte*");  // takes no part in steps
  for (int step = 0; step < 200; ++step) {
    if (step == 50) opt.unfreeze("wte*");  // goes on from its own step counter
    opt.rule().lr = opt.rule(no_decay).lr = 0.05 * (200 - step) / 200;
    backward(model, grads);  // yours
    opt.step(grads);         // still one pass over all tensors
  }
  // example-end groups
  std::printf("%s", opt.describe().text().c_str());
  return backward(model, grads);
}

static double train_with(std::string const& rule) {
  network parameters, gradients;
  tensors const model = parameters.list(), grads = gradients.list();
  memfit::host exec{};
  // example-begin registry
  using choices =
      memfit::registry<memfit::rules<memfit::adamw, memfit::lion>, memfit::formats<memfit::float8>>;
  auto const opt = memfit::make<choices>(rule, "float8", exec, {{"lr", 0.05}}, model);
  opt->add_group({"*bias", "ln*"}, {{"weight_decay", 0}});
  // example-end registry
  for (int step = 0; step < 200; ++step) {
    opt->set("lr", 0.05 * (200 - step) / 200);
    backward(model, grads);
    opt->step(grads);
  }
  double const loss = backward(model, grads);
  std::printf("%s: loss %.6f\n", opt->rule_name().c_str(), loss);
  return loss;
}

int main(int argc, char** argv) {
  network untrained, gradients;
  double const before = backward(untrained.list(), gradients.list());
  try {
    if (argc > 1) return train_with(argv[1]) < 0.01 * before ? 0 : 1;
    bool const learned = train_in_groups() < 0.01 * before && train_with("adamw") < 0.01 * before &&
                         train_with("lion") < 0.01 * before;
    return learned ? 0 : 1;
  } catch (memfit::error const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
