#include "trainer.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numbers>

#include <memfit/checkpoint/plan/simple.hpp>
#include <memfit/core/error.hpp>

#include "counted_memory.hpp"
#include "data.hpp"
#include "device.hpp"
#include "fitting.hpp"
#include "free_memory.hpp"
#include "gradient_file.hpp"
#include "hugging_face.hpp"
#include "interrupt.hpp"
#include "log.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "sample.hpp"
#include "schedule_picture.hpp"
#include "states.hpp"
#include "user_error.hpp"

namespace gpt2 {

namespace {

// Enough for two runs to be compared to a fraction of a percent, but no more than a run learns
// from.
index validation_tokens(const options& o) {
  constexpr index most = 32768;
  index const of_step = o.batch * o.seq;
  return o.steps < most / of_step ? o.steps * of_step : most;
}

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

optimizer_settings settings_of(const options& o) {
  return {.rule = o.optimizer,
          .state = o.state,
          .column = o.parameters,
          .lr = o.lr,
          .weight_decay = o.weight_decay,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.eps,
          .momentum = o.momentum};
}

update_settings settings_of_update(const options& o) {
  return {.sums = o.micro_batch < o.batch && !o.release,
          .release = o.release,
          .sum_in = o.accumulate_in,
          .seed = o.seed,
          .loss_scale = o.loss_scale,
          .clip_norm = o.clip_norm,
          .clip_percentile = o.clip_percentile};
}

// Of released gradients all blocks use the same.
config sizes_of_gradients(const options& o) {
  config sizes = o.sizes;
  if (o.release) sizes.layers = 1;
  return sizes;
}

template <class T>
std::unique_ptr<device<T>> open(const options& o, budget& counts) {
  return o.device == device_choice::cuda ? open_cuda<T>(counts) : open_host<T>(o.threads, counts);
}

template <class T>
class run {
 public:
  run(const options& o, corpus text)
      : options_{o},
        text_{std::move(text)},
        held_out_{cover(text_.validation, {o.micro_batch, o.seq}, validation_tokens(o))} {
    begin();
    optimizer_ = device_->make_optimizer(settings_of(o), parameters_);
    update_ = device_->make_update(settings_of_update(o), gradients_, *optimizer_);
    if (o.save) require_writable("--save", *o.save, text_.files);
    if (o.exported) require_place_for_weights(*o.exported, sizes_, text_.files);
    if (o.resume) begin_where_it_stopped();
    plan_checkpoints();
    if (o.release) network_.set_after_backward([this](index stage) { release(stage); });
    draw_checkpoints();
  }

  outcome operator()() {
    step_log log{options_.log, text_.files};
    introduce();
    report_checkpoints();
    progress line;
    auto const start = clock::now();
    do {
      auto const r = one_step(++step_, start);
      log.write(r);
      line.show(r);
      if (!std::isfinite(r.loss)) {
        line.end();
        throw std::runtime_error("the loss is no longer finite after step " +
                                 std::to_string(step_) + "; a smaller --lr may help");
      }
      if (options_.save_every > 0 && step_ % options_.save_every == 0 && !is_last()) save_states();
    } while (!is_last() && !interrupted());
    line.end();
    if (options_.save) save_states();
    if (options_.exported) export_weights();
    conclude(seconds_since(start));
    print_sample();
    return is_last() ? outcome::finished : outcome::interrupted;
  }

 private:
  [[nodiscard]] bool is_last() const { return step_ == options_.steps; }

  void begin() {
    if (options_.init)
      read_weights(*options_.init, parameters_);
    else
      initialize(parameters_, options_.seed);
  }
  void export_weights() {
    write_weights(*options_.exported, sizes_, parameters_,
                  [this](std::size_t parameter, index first, index count) {
                    return optimizer_->values(parameter, first, count);
                  });
  }

  // Everything that the next step depends on besides the options and the data.
  state_parts parts() {
    state_parts all;
    all.push_back(states_of(parameters_));
    optimizer_->add_states(all);
    update_->add_states(all);
    all.push_back(states_of(step_, options_.seed));
    return all;
  }
  void save_states() { save(*options_.save, parts()); }
  void begin_where_it_stopped() {
    resume(*options_.resume, parts());
    resumed_at_ = step_;
    if (step_ >= options_.steps)
      throw user_error("--resume: the run in '" + options_.resume->string() + "' has taken " +
                       std::to_string(step_) + " steps, and --steps is " +
                       std::to_string(options_.steps));
  }

  report one_step(index step, clock::time_point run_start) {
    report r;
    r.step = step;
    r.steps = options_.steps;
    r.lr = learning_rate(options_, step);
    auto const start = clock::now();
    draw(text_.train, step_shape_, options_.seed, step, batch_);
    if (options_.release) update_->begin(r.lr, step_shape_.rows());
    for (index first = 0; first < step_shape_.batch; first += shape_.batch)
      r.loss += differentiate(first, step);
    on_.wait();
    captured_.write(gradients_);
    auto const before_update = clock::now();
    update_->step(r.lr);
    on_.wait();
    update_seconds_ += seconds_since(before_update);
    update_->tell(r);
    double const seconds = seconds_since(start);
    step_seconds_ += seconds;
    r.tokens_per_s = static_cast<double>(step_shape_.rows()) / seconds;
    if (step == options_.steps || (options_.val_every > 0 && step % options_.val_every == 0))
      r.val_loss = val_loss_ = validate();
    r.seconds_left = seconds_since(run_start) / static_cast<double>(step - resumed_at_) *
                     static_cast<double>(r.steps - step);
    r.bytes = budget_.peak();
    r.total_bytes = budget_.peak_total();
    r.peak_rss = peak_rss();
    r.checkpoint = options_.checkpoint.text;
    r.planned_activations = plan_.peak;
    return r;
  }

  // One micro-batch of the step's batch, from this window on. Returns its part of the mean loss.
  double differentiate(index first, index step) {
    extent const shape{std::min(shape_.batch, step_shape_.batch - first), shape_.seq};
    index const passes = (step_shape_.batch + shape_.batch - 1) / shape_.batch;
    place(batch_, first, shape);
    if (!gradients_are_zero_)
      for (tensor<T>* g : gradients_.all()) on_.set_zero(*g);
    forward(shape, (step - 1) * passes + first / shape_.batch + 1, options_.dropout);
    double const loss = network_.loss(targets_.data(), update_->loss_scale());
    if (options_.release) update_->begin_pass(shape.rows());
    runner_->backward(network_);
    gradients_are_zero_ = update_->add(shape.rows()) || options_.release;
    return loss * (static_cast<double>(shape.rows()) / static_cast<double>(step_shape_.rows()));
  }

  // Steps what a stage has completed, and makes room for the next one.
  void release(index stage) {
    auto const done = completed_by(stage, sizes_.layers, gradients_);
    update_->complete(done);
    for (tensor<T>* g : done.gradients) on_.set_zero(*g);
  }

  void plan_checkpoints() {
    network_.set_batch(shape_, static_cast<float>(options_.dropout));
    // Timing takes memory for a block, which --fit does not plan for.
    timed_ = options_.checkpoint.needs_times() || (options_.checkpoint_report && !options_.fit);
    stages_ = timed_ ? device_->measure(network_, inputs_.data()) : network_.chain();
    plan_ = plan_for(options_.checkpoint, stages_, [&] { return device_->free_bytes(); });
    other_product_seconds_ = product_seconds();
    try {
      runner_ = device_->make_runner(stages_, plan_);
    } catch (const memfit::memory_error& none) {
      throw user_error(std::string{none.what()} + "; --checkpoint auto or budget:BYTES takes less");
    }
  }

  void draw_checkpoints() const {
    if (!options_.checkpoint_svg) return;
    std::ofstream file{*options_.checkpoint_svg};
    file << svg(stages_, plan_) << std::flush;
    if (!file)
      throw user_error("--checkpoint-report: cannot write '" + options_.checkpoint_svg->string() +
                       "'");
  }

  // Text, the batches that are cut from it, and those that are held out.
  // In the memory that the budget is of.
  [[nodiscard]] index bytes_of_data() const {
    if (options_.device != device_choice::host) return 0;
    index bytes = text_.bytes() + 2 * step_shape_.rows() * static_cast<index>(sizeof(token));
    for (auto const& b : held_out_) bytes += b.bytes();
    return bytes;
  }

  // Windows of a batch, from `first` on.
  void place(const batch& b, index first, extent shape) {
    index const start = first * shape.seq;
    inputs_.write(0, b.inputs.data() + start, shape.rows());
    targets_.write(0, b.targets.data() + start, shape.rows());
  }

  void forward(extent shape, index pass, double dropped_share) {
    network_.set_batch(shape, static_cast<float>(dropped_share));
    runner_->forward(network_, inputs_.data(), {static_cast<std::uint64_t>(options_.seed), pass});
  }

  double validate() {
    double const products = product_seconds();
    double sum = 0;
    index rows = 0;
    for (auto const& b : held_out_) {
      place(b, 0, b.shape);
      forward(b.shape, 0, 0);
      sum += network_.loss(targets_.data()) * static_cast<double>(b.shape.rows());
      rows += b.shape.rows();
    }
    other_product_seconds_ += product_seconds() - products;
    return sum / static_cast<double>(rows);
  }

  [[nodiscard]] double product_seconds() const { return on_.product_seconds().value_or(0); }

  void introduce() {
    std::printf(
        "model: %lld layers, %lld heads, %lld channels, context %lld, vocabulary %lld, %lld "
        "parameters\n",
        static_cast<long long>(sizes_.layers), static_cast<long long>(sizes_.heads),
        static_cast<long long>(sizes_.channels), static_cast<long long>(sizes_.context),
        static_cast<long long>(sizes_.vocabulary),
        static_cast<long long>(parameters_.bytes() / static_cast<index>(sizeof(T))));
    if (options_.init) std::printf("weights: from %s\n", options_.init->c_str());
    if (options_.resume)
      std::printf("resumed: after step %lld, from %s\n", static_cast<long long>(step_),
                  options_.resume->c_str());
    std::printf("data: %zu files, %lld %s to train on, %lld held out\n", text_.files.size(),
                static_cast<long long>(text_.train.size()), std::string{format_.unit()}.c_str(),
                static_cast<long long>(text_.validation.size()));
    std::printf("training: %lld steps of %lld x %lld tokens, %s with states in %s, %s\n",
                static_cast<long long>(options_.steps), static_cast<long long>(step_shape_.batch),
                static_cast<long long>(shape_.seq),
                std::string{name_of(rules, options_.optimizer)}.c_str(),
                std::string{name_of(states, options_.state)}.c_str(), device_->describe().c_str());
  }

  // Against keeping everything, in the bytes and, where they were measured, in the time of a step.
  void report_checkpoints() {
    auto const all = memfit::checkpoint::keep_all(stages_);
    std::printf("activations: %s, %s (%.0f %% of all), %lld forwards of %zu stages",
                options_.checkpoint.text.c_str(), readable_bytes(plan_.peak).c_str(),
                100 * static_cast<double>(plan_.peak) / static_cast<double>(all.peak),
                static_cast<long long>(plan_.forwards), stages_.size());
    if (timed_)
      std::printf(", about %.2f of the time",
                  static_cast<double>(plan_.time) / static_cast<double>(all.time));
    std::printf("\n");
    if (options_.checkpoint_report)
      std::printf("%s", picture(stages_, plan_, terminal_columns().value_or(100)).c_str());
  }

  void conclude(double seconds) {
    if (!is_last()) std::printf("interrupted\n");
    std::printf("%lld steps in %.1f s", static_cast<long long>(step_ - resumed_at_), seconds);
    if (step_seconds_ > 0) {
      if (on_.product_seconds())
        std::printf(", matrix products %.0f %% of each step",
                    100 * (product_seconds() - other_product_seconds_) / step_seconds_);
      if (!options_.release)
        std::printf(", the optimizer %.1f %%", 100 * update_seconds_ / step_seconds_);
    }
    if (val_loss_) std::printf(", last validation loss %.4f", *val_loss_);
    std::printf("\nbytes: %s, together %s, peak %s\n", budget_.peak().text().c_str(),
                readable_bytes(budget_.peak_total()).c_str(), readable_bytes(peak_rss()).c_str());
  }

  void print_sample() {
    if (options_.sample == 0) return;
    auto const sampled = sample(
        workspace_, format_, shape_.seq, network_, *runner_,
        {.tokens = options_.sample, .temperature = options_.temperature, .seed = options_.seed});
    std::printf("sample:\n%s\n", printable(sampled, format_).c_str());
  }

  const options& options_;
  config sizes_ = options_.sizes;
  token_format format_{options_.tokens, sizes_.vocabulary};
  extent step_shape_{options_.batch, options_.seq};
  extent shape_{options_.micro_batch, options_.seq};  // of one pass
  corpus text_;
  std::vector<batch> held_out_;
  batch batch_;
  budget budget_{options_.memory_limit};
  reservation data_{budget_, category::workspace, bytes_of_data()};
  std::unique_ptr<device<T>> device_ = open<T>(options_, budget_);
  backend<T>& on_ = device_->network();
  counted_memory workspace_{on_.own_memory(), budget_, category::workspace};
  counted_memory for_parameters_{on_.own_memory(), budget_, category::parameters};
  counted_memory for_gradients_{on_.own_memory(), budget_, category::gradients};
  tensor<token> inputs_{"inputs", {shape_.rows()}, workspace_};
  tensor<token> targets_{"targets", {shape_.rows()}, workspace_};
  weights<T> parameters_{sizes_, for_parameters_},
      gradients_{sizes_of_gradients(options_), for_gradients_};
  model<T> network_{on_, sizes_, shape_, parameters_, gradients_};
  std::unique_ptr<optimizer<T>> optimizer_;
  std::unique_ptr<update<T>> update_;
  index step_ = 0, resumed_at_ = 0;  // steps taken, and those of earlier runs
  bool gradients_are_zero_ = false;
  memfit::checkpoint::chain stages_;
  bool timed_ = false;
  memfit::checkpoint::schedule plan_;
  std::unique_ptr<runner<T>> runner_;
  gradient_file captured_{options_.captured_gradients};
  double step_seconds_ = 0, update_seconds_ = 0, other_product_seconds_ = 0;
  std::optional<double> val_loss_;
};

index free_bytes(const options& o) {
  budget uncounted;
  return o.device == device_choice::cuda ? open_cuda<float>(uncounted)->free_bytes()
                                         : free_host_bytes();
}

// As they are, or as --fit makes them; before anything large is allocated.
options that_fit(const options& given, const corpus& text) {
  index const tokens = 2 * (given.batch * given.seq + validation_tokens(given));
  surroundings const here{text.bytes() + tokens * static_cast<index>(sizeof(token)),
                          free_bytes(given)};
  if (!given.fit) {
    require_room(given, here);
    return given;
  }
  auto const f = fitted(given, here);
  std::printf("%s", f.text.c_str());
  return f.chosen;
}

}  // namespace

double learning_rate(const options& o, index step) {
  if (step <= o.warmup) return o.lr * static_cast<double>(step) / static_cast<double>(o.warmup);
  constexpr double last = 0.1;
  double const done =
      static_cast<double>(step - o.warmup) / static_cast<double>(o.steps - o.warmup);
  return o.lr * (last + (1 - last) * 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

outcome train(const options& given) {
  auto text = load(given.data.empty() ? default_data() : given.data,
                   {given.tokens, given.sizes.vocabulary}, given.seq);
  auto const o = that_fit(given, text);
  switch (o.precision) {
    case precision_choice::fp32:
      return run<float>{o, std::move(text)}();
    case precision_choice::bf16:
      return run<bf16>{o, std::move(text)}();
    case precision_choice::fp16:
      return run<fp16>{o, std::move(text)}();
  }
  return outcome::finished;
}

}  // namespace gpt2
