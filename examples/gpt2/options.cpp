#include "options.hpp"

#include <cmath>
#include <limits>
#include <thread>

#include <CLI/CLI.hpp>

namespace gpt2 {

namespace {

constexpr const char* footer =
    "The learning rate rises over the warm-up and then falls along a cosine to a tenth. Weight "
    "decay acts on matrices\n"
    "only. The last tenth of every data file is held out for the validation loss. Ctrl-C ends the "
    "run after the\n"
    "current step, with a complete log and sample and exit status 130. Mistakes in options or "
    "data: exit status 2.";

template <class T>
void need(bool right, const char* option, const T& value, const char* rule) {
  if (right) return;
  std::ostringstream text;
  text << option << " is " << value << ", but must be " << rule;
  throw user_error(text.str());
}

void need_at_least(index least, const char* option, index value) {
  need(value >= least, option, value, ("at least " + std::to_string(least)).c_str());
}

void need_positive(const char* option, double value) {
  need(std::isfinite(value) && value > 0, option, value, "a finite number above 0");
}

void need_non_negative(const char* option, double value) {
  need(std::isfinite(value) && value >= 0, option, value, "a finite number, 0 or more");
}

void need_fraction(const char* option, double value) {
  need(value >= 0 && value < 1, option, value, "at least 0 and less than 1");
}

// Far above any model, far below where products of sizes leave 64 bits.
constexpr index largest_size = index{1} << 20;

void need_size(const char* option, index value) {
  need(value >= 1 && value <= largest_size, option, value, "at least 1 and at most 1048576");
}

void check(const options& o) {
  need_size("--layers", o.sizes.layers);
  need_size("--heads", o.sizes.heads);
  need_size("--channels", o.sizes.channels);
  need_size("--context", o.sizes.context);
  need_size("--batch", o.batch);
  need_size("--seq", o.seq);
  if (o.sizes.channels % o.sizes.heads != 0)
    throw user_error("--channels " + std::to_string(o.sizes.channels) +
                     " does not divide into --heads " + std::to_string(o.sizes.heads));
  if (o.seq > o.sizes.context)
    throw user_error("--seq " + std::to_string(o.seq) + " is longer than --context " +
                     std::to_string(o.sizes.context));
  need_at_least(1, "--steps", o.steps);
  need_at_least(0, "--warmup", o.warmup);
  need_at_least(0, "--val-every", o.val_every);
  need_at_least(0, "--sample", o.sample);
  need(o.threads >= 1 && o.threads <= 4096, "--threads", o.threads, "at least 1 and at most 4096");
  need_positive("--lr", o.lr);
  need_non_negative("--weight-decay", o.weight_decay);
  need_fraction("--beta1", o.beta1);
  need_fraction("--beta2", o.beta2);
  need_positive("--eps", o.eps);
  need_fraction("--momentum", o.momentum);
  need_positive("--temperature", o.temperature);
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

command_line parse(int argc, const char* const* argv) {
  options o;
  config given;
  std::string model = "small";
  std::string rule{name_of(rules, o.optimizer)};
  std::string state{name_of(states, o.state)};
  std::vector<std::string> data;
  std::string log;
  o.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));

  CLI::App app{"Trains a GPT-2 on the bytes of text files, with memfit's optimizers.",
               "gpt2_train"};
  app.footer(footer);
  app.add_option("--model", model, names(models, "|"))->capture_default_str()->group("Model");
  auto* const layers =
      app.add_option("--layers", given.layers, "instead of the model's")->group("Model");
  auto* const heads =
      app.add_option("--heads", given.heads, "instead of the model's")->group("Model");
  auto* const channels =
      app.add_option("--channels", given.channels, "instead of the model's")->group("Model");
  auto* const context =
      app.add_option("--context", given.context, "instead of the model's")->group("Model");
  app.add_option("--data", data, "files or folders (default: the system's licence texts)")
      ->group("Data");
  app.add_option("--batch", o.batch, "windows per step")->capture_default_str()->group("Data");
  auto* const seq =
      app.add_option("--seq", o.seq, "tokens per window (default: the context)")->group("Data");
  app.add_option("--seed", o.seed, "of initial parameters, batches and sample")
      ->capture_default_str()
      ->group("Data");
  app.add_option("--steps", o.steps, "")->capture_default_str()->group("Training");
  app.add_option("--lr", o.lr, "largest learning rate")->capture_default_str()->group("Training");
  app.add_option("--warmup", o.warmup, "steps of rising learning rate")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--weight-decay", o.weight_decay, "of matrices")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--optimizer", rule, names(rules, "|"))->capture_default_str()->group("Training");
  app.add_option("--state", state, names(states, "|"))->capture_default_str()->group("Training");
  app.add_option("--beta1", o.beta1, "adam, adamw")->capture_default_str()->group("Training");
  app.add_option("--beta2", o.beta2, "adam, adamw")->capture_default_str()->group("Training");
  app.add_option("--eps", o.eps, "adam, adamw")->capture_default_str()->group("Training");
  app.add_option("--momentum", o.momentum, "momentum")->capture_default_str()->group("Training");
  app.add_option("--threads", o.threads, "")->capture_default_str()->group("Training");
  app.add_option("--val-every", o.val_every, "steps between validations (0: at the end only)")
      ->capture_default_str()
      ->group("Output");
  app.add_option("--log", log, "a JSON line per step goes to this file")->group("Output");
  app.add_option("--sample", o.sample, "bytes of text to generate at the end")
      ->capture_default_str()
      ->group("Output");
  app.add_option("--temperature", o.temperature, "of the sample")
      ->capture_default_str()
      ->group("Output");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {.train = std::nullopt, .text = app.help()};
  } catch (const CLI::ParseError& wrong) {
    throw user_error(one_line(wrong.what()) + " (gpt2_train --help lists the options)");
  }

  o.sizes = choose(models, "--model", model);
  if (*layers) o.sizes.layers = given.layers;
  if (*heads) o.sizes.heads = given.heads;
  if (*channels) o.sizes.channels = given.channels;
  if (*context) o.sizes.context = given.context;
  if (!*seq) o.seq = o.sizes.context;
  o.optimizer = choose(rules, "--optimizer", rule);
  o.state = choose(states, "--state", state);
  o.data.assign(data.begin(), data.end());
  if (!log.empty()) o.log = log;
  check(o);
  return {.train = o, .text = {}};
}

}  // namespace gpt2
