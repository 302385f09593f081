#include "trainer.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "data.hpp"
#include "device.hpp"
#include "interrupt.hpp"
#include "log.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "sample.hpp"

namespace gpt2 {

namespace {

// Enough for two runs to be compared to a fraction of a percent.
constexpr index validation_tokens = 32768;

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

optimizer_settings settings_of(const options& o) {
  return {.rule = o.optimizer,
          .state = o.state,
          .lr = o.lr,
          .weight_decay = o.weight_decay,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.eps,
          .momentum = o.momentum};
}

std::unique_ptr<device<float>> open(const options& o) {
  return o.device == device_choice::cuda ? open_cuda<float>() : open_host<float>(o.threads);
}

class run {
 public:
  explicit run(const options& o)
      : options_{o},
        text_{load(o.data.empty() ? default_data() : o.data, o.seq)},
        held_out_{cover(text_.validation, {o.batch, o.seq}, validation_tokens)} {
    initialize(parameters_, o.seed);
    optimizer_ = device_->make_optimizer(settings_of(o), parameters_);
  }

  outcome operator()() {
    step_log log{options_.log, text_.files};
    introduce();
    progress line;
    auto const start = clock::now();
    index step = 0;
    do {
      auto const r = one_step(++step, start);
      log.write(r);
      line.show(r);
      if (!std::isfinite(r.loss)) {
        line.end();
        throw std::runtime_error("the loss is no longer finite after step " + std::to_string(step) +
                                 "; a smaller --lr may help");
      }
    } while (step < options_.steps && !interrupted());
    line.end();
    conclude(step, seconds_since(start));
    print_sample();
    return step < options_.steps ? outcome::interrupted : outcome::finished;
  }

 private:
  report one_step(index step, clock::time_point run_start) {
    report r;
    r.step = step;
    r.steps = options_.steps;
    r.lr = learning_rate(options_, step);
    auto const start = clock::now();
    draw(text_.train, shape_, options_.seed, step, batch_);
    for (tensor<float>* g : gradients_.all()) on_.set_zero(*g);
    r.loss = loss_of(batch_);
    backward(on_, sizes_, shape_, inputs_.data(), parameters_, activations_, gradients_,
             workspace_);
    on_.wait();
    auto const before_update = clock::now();
    optimizer_->step(gradients_, r.lr);
    on_.wait();
    update_seconds_ += seconds_since(before_update);
    double const seconds = seconds_since(start);
    step_seconds_ += seconds;
    r.tokens_per_s = static_cast<double>(shape_.rows()) / seconds;
    if (step == options_.steps || (options_.val_every > 0 && step % options_.val_every == 0))
      r.val_loss = val_loss_ = validate();
    r.seconds_left =
        seconds_since(run_start) / static_cast<double>(step) * static_cast<double>(r.steps - step);
    r.bytes = count_bytes();
    r.peak_rss = peak_rss();
    return r;
  }

  double loss_of(const batch& b) {
    inputs_.write(0, b.inputs.data(), b.shape.rows());
    targets_.write(0, b.targets.data(), b.shape.rows());
    forward(on_, sizes_, b.shape, inputs_.data(), parameters_, activations_);
    return loss(on_, b.shape, targets_.data(), activations_);
  }

  double validate() {
    double const products = product_seconds();
    double sum = 0;
    index rows = 0;
    for (auto const& b : held_out_) {
      sum += loss_of(b) * static_cast<double>(b.shape.rows());
      rows += b.shape.rows();
    }
    validation_product_seconds_ += product_seconds() - products;
    return sum / static_cast<double>(rows);
  }

  [[nodiscard]] double product_seconds() const { return on_.product_seconds().value_or(0); }

  byte_counts count_bytes() {
    index tokens = batch_.bytes() + inputs_.bytes() + targets_.bytes();
    for (auto const& b : held_out_) tokens += b.bytes();
    return {.parameters = parameters_.bytes(),
            .gradients = gradients_.bytes(),
            .states = optimizer_->state_bytes(),
            .activations = activations_.bytes(),
            .workspace = workspace_.bytes() + on_.scratch_bytes() + tokens};
  }

  void introduce() {
    std::printf("model: %lld layers, %lld heads, %lld channels, context %lld, %lld parameters\n",
                static_cast<long long>(sizes_.layers), static_cast<long long>(sizes_.heads),
                static_cast<long long>(sizes_.channels), static_cast<long long>(sizes_.context),
                static_cast<long long>(parameters_.bytes() / static_cast<index>(sizeof(float))));
    std::printf("data: %zu files, %zu bytes to train on, %zu held out\n", text_.files.size(),
                text_.train.size(), text_.validation.size());
    std::printf("training: %lld steps of %lld x %lld tokens, %s with states in %s, %s\n",
                static_cast<long long>(options_.steps), static_cast<long long>(shape_.batch),
                static_cast<long long>(shape_.seq),
                std::string{name_of(rules, options_.optimizer)}.c_str(),
                std::string{name_of(states, options_.state)}.c_str(), device_->describe().c_str());
  }

  void conclude(index steps, double seconds) {
    if (steps < options_.steps) std::printf("interrupted\n");
    std::printf("%lld steps in %.1f s", static_cast<long long>(steps), seconds);
    if (step_seconds_ > 0) {
      std::printf(", ");
      if (on_.product_seconds())
        std::printf("matrix products %.0f %% and ",
                    100 * (product_seconds() - validation_product_seconds_) / step_seconds_);
      std::printf("the optimizer %.1f %% of each step", 100 * update_seconds_ / step_seconds_);
    }
    if (val_loss_) std::printf(", last validation loss %.4f", *val_loss_);
    auto const b = count_bytes();
    std::printf(
        "\nbytes: parameters %s, gradients %s, states %s, activations %s, workspace %s, peak %s\n",
        readable_bytes(b.parameters).c_str(), readable_bytes(b.gradients).c_str(),
        readable_bytes(b.states).c_str(), readable_bytes(b.activations).c_str(),
        readable_bytes(b.workspace).c_str(), readable_bytes(peak_rss()).c_str());
  }

  void print_sample() {
    if (options_.sample == 0) return;
    auto const text = sample(
        on_, sizes_, shape_.seq, parameters_, activations_,
        {.bytes = options_.sample, .temperature = options_.temperature, .seed = options_.seed});
    std::printf("sample:\n%s\n", printable(text).c_str());
  }

  const options& options_;
  config sizes_ = options_.sizes;
  extent shape_{options_.batch, options_.seq};
  corpus text_;
  std::vector<batch> held_out_;
  batch batch_;
  std::unique_ptr<device<float>> device_ = open(options_);
  backend<float>& on_ = device_->network();
  memory& memory_ = on_.own_memory();
  tensor<token> inputs_{"inputs", {shape_.rows()}, memory_};
  tensor<token> targets_{"targets", {shape_.rows()}, memory_};
  weights<float> parameters_{sizes_, memory_}, gradients_{sizes_, memory_};
  activations<float> activations_{sizes_, shape_, memory_};
  workspace<float> workspace_{sizes_, shape_, memory_};
  std::unique_ptr<optimizer<float>> optimizer_;
  double step_seconds_ = 0, update_seconds_ = 0, validation_product_seconds_ = 0;
  std::optional<double> val_loss_;
};

}  // namespace

double learning_rate(const options& o, index step) {
  if (step <= o.warmup) return o.lr * static_cast<double>(step) / static_cast<double>(o.warmup);
  constexpr double last = 0.1;
  double const done =
      static_cast<double>(step - o.warmup) / static_cast<double>(o.steps - o.warmup);
  return o.lr * (last + (1 - last) * 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

outcome train(const options& o) {
  return run{o}();
}

}  // namespace gpt2
