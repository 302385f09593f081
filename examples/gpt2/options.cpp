#include "options.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <thread>

#include <CLI/CLI.hpp>

#include <memfit/release.hpp>

#include "../shared/bytes.hpp"
#include "costs.hpp"
#include "hugging_face.hpp"

namespace gpt2 {

namespace {

constexpr const char* footer =
    "The learning rate rises over the warm-up and then falls along a cosine to a tenth. Weight "
    "decay acts on matrices\n"
    "only. The last tenth of every data file is held out for the validation loss. Ctrl-C ends the "
    "run after the\n"
    "current step, with a complete log, sample and --save file and exit status 130. Mistakes in "
    "options or data: exit status 2. A run that is resumed with the options that it began with "
    "goes on bit for bit.";

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

// The library computes in float: a number must still be what it claims to be there.
void need_positive(const char* option, double value) {
  auto const f = static_cast<float>(value);
  need(std::isfinite(f) && f > 0, option, value, "a finite number above 0");
}

void need_non_negative(const char* option, double value) {
  need(std::isfinite(static_cast<float>(value)) && value >= 0, option, value,
       "a finite number, 0 or more");
}

void need_fraction(const char* option, double value) {
  need(value >= 0 && static_cast<float>(value) < 1, option, value, "at least 0 and less than 1");
}

void need_size(const char* option, index value) {
  need(value >= 1 && value <= largest_size, option, value, "at least 1 and at most 1048576");
}

void check_release(const options& o) {
  char const* const refused = o.clip_percentile      ? "--clip-percentile"
                              : o.captured_gradients ? "--capture-gradients"
                                                     : nullptr;
  if (refused != nullptr)
    throw user_error("--release cannot be given with " + std::string{refused} +
                     ", which wants the gradients of a whole step at once");
  auto const cost = cost_of(o.optimizer, o.state).cost;
  bool const state_is_open = o.fit && !o.fixed.state;
  if (!state_is_open && (o.batch - 1) / o.micro_batch >= cost.most_folded)
    throw user_error("--release with --state " + std::string{name_of(states, o.state)} +
                     ", which every micro-batch rounds anew, takes at most " +
                     std::to_string(cost.most_folded) + " micro-batches");
  if (o.micro_batch < o.batch && !cost.folds)
    throw user_error(
        "--release with --micro-batch needs --optimizer adamw or adam, whose moments "
        "take the gradients of micro-batches one by one");
}

bool is_same_place(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code unknown;
  return std::filesystem::weakly_canonical(a, unknown) ==
         std::filesystem::weakly_canonical(b, unknown);
}

void check(const options& o) {
  need_size("--layers", o.sizes.layers);
  need_size("--heads", o.sizes.heads);
  need_size("--channels", o.sizes.channels);
  need_size("--context", o.sizes.context);
  need(o.sizes.vocabulary >= 1 && o.sizes.vocabulary <= largest_vocabulary, "--vocabulary",
       o.sizes.vocabulary, "at least 1 and at most 65536");
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
  need_at_least(0, "--save-every", o.save_every);
  if (o.init && o.resume) throw user_error("--init and --resume cannot both be given");
  if (o.save && o.exported && is_same_place(*o.save, *o.exported))
    throw user_error("--save and --export name the same file");
  if (o.save_every > 0 && !o.save) throw user_error("--save-every needs --save FILE");
  need_at_least(0, "--seed", o.seed);
  need(o.threads >= 1 && o.threads <= 4096, "--threads", o.threads, "at least 1 and at most 4096");
  need_positive("--lr", o.lr);
  need_non_negative("--weight-decay", o.weight_decay);
  need_fraction("--beta1", o.beta1);
  need_fraction("--beta2", o.beta2);
  need_positive("--eps", o.eps);
  need_fraction("--momentum", o.momentum);
  need_fraction("--dropout", o.dropout);
  need(o.micro_batch >= 1 && o.micro_batch <= o.batch, "--micro-batch", o.micro_batch,
       ("at least 1 and at most --batch " + std::to_string(o.batch)).c_str());
  if (o.clip_norm) need_positive("--clip-norm", *o.clip_norm);
  if (o.clip_percentile)
    need(*o.clip_percentile > 0 && *o.clip_percentile <= 100, "--clip-percentile",
         *o.clip_percentile, "above 0 and at most 100");
  if (o.captured_gradients && (o.micro_batch < o.batch || o.loss_scale))
    throw user_error("--capture-gradients wants gradients of whole batches, without --loss-scale");
  if (o.clip_norm && o.clip_percentile)
    throw user_error("--clip-norm and --clip-percentile cannot both be given");
  if (o.release) check_release(o);
  need_positive("--temperature", o.temperature);
  if (o.optimizer != rule_choice::sgd && !is_offered(o.optimizer, o.precision, o.state)) {
    std::string offered;
    for (auto const& [name, state] : states)
      if (is_offered(o.optimizer, o.precision, state))
        (offered += offered.empty() ? "" : ", ") += name;
    throw user_error("--state " + std::string{name_of(states, o.state)} +
                     " is not built for --optimizer " + std::string{name_of(rules, o.optimizer)} +
                     " with --precision " + std::string{name_of(precisions, o.precision)} +
                     ", which have " + offered);
  }
  if (o.parameters == column_choice::corrected &&
      !is_offered(o.optimizer, o.precision, o.parameters, o.state))
    throw user_error(
        "--parameters corrected needs --precision bf16, --optimizer adamw and --state "
        "fp32 or root8");
}

constexpr const char* loss_scale_words = "dynamic|dynamic:S|static:S|none";

std::optional<memfit::loss_scaler_options> parse_loss_scale(const std::string& text) {
  using memfit::loss_scaler_options;
  if (text == "none") return std::nullopt;
  if (text == "dynamic") return loss_scaler_options{};
  auto const colon = text.find(':');
  auto const kind = text.substr(0, colon);
  auto const number = colon == std::string::npos ? "" : text.substr(colon + 1);
  float scale = 0;
  auto const read = std::from_chars(number.data(), number.data() + number.size(), scale);
  bool const whole = read.ec == std::errc{} && read.ptr == number.data() + number.size();
  loss_scaler_options const bounds;
  if ((kind != "dynamic" && kind != "static") || !whole)
    throw user_error("--loss-scale: '" + text + "' is none of " + loss_scale_words);
  need(scale >= bounds.least && scale <= bounds.most, "--loss-scale", text,
       "a scale from 2^-126 to 2^126");
  if (kind == "static") return loss_scaler_options::fixed(scale);
  loss_scaler_options o;
  o.initial = scale;
  return o;
}

index parse_bytes(const char* option, const std::string& text) {
  auto const bytes = shared::bytes_in(text);
  need(bytes.has_value(), option, text, "bytes, such as 500MB or 12GiB");
  return *bytes;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

command_line parse(int argc, const char* const* argv) {
  options o;
  some_sizes given;
  std::string model = "small", tokens{name_of(token_kinds, o.tokens)};
  std::string device{name_of(devices, o.device)};
  std::string rule{name_of(rules, o.optimizer)};
  std::string state{name_of(states, o.state)};
  std::string precision{name_of(precisions, o.precision)};
  std::string column{name_of(parameter_columns, o.parameters)};
  std::string sum{name_of(sum_types, o.accumulate_in)};
  std::string loss_scale;
  double clip_norm = 0, clip_percentile = 0;
  std::vector<std::string> data;
  std::string log, save, resume, init, shared, gradients, checkpoint, svg, memory_limit, fit;
  o.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));

  CLI::App app{"Trains a GPT-2 on text, or on tokens, with memfit's optimizers.", "gpt2_train"};
  app.footer(footer);
  std::string group = "Model";
  auto const add = [&](const char* name, auto& value, const std::string& text) {
    return app.add_option(name, value, text)->group(group);
  };
  auto const add_default = [&](const char* name, auto& value, const std::string& text) {
    return add(name, value, text)->capture_default_str();
  };

  auto* const named = add("--model", model, names(models, "|"))->capture_default_str();
  add("--layers", given.layers, "instead of the model's");
  add("--heads", given.heads, "instead of the model's");
  add("--channels", given.channels, "instead of the model's");
  add("--context", given.context, "instead of the model's");
  add("--vocabulary", given.vocabulary, "instead of the model's");
  auto* const begun = add("--init", init,
                          "file that transformers keeps a GPT-2 in (model.safetensors):\nits "
                          "weights, and its sizes unless they are given");
  group = "Data";
  add("--data", data, "files or folders (default: the system's licence texts)");
  add_default("--tokens", tokens,
              names(token_kinds, "|") + "\nof the data: text, or numbers, little endian");
  add_default("--batch", o.batch, "windows per step");
  auto* const seq = add("--seq", o.seq, "tokens per window (default: the context)");
  add_default("--seed", o.seed, "of initial parameters, batches and sample");
  group = "Training";
  add_default("--steps", o.steps, "batches to learn from");
  add_default("--lr", o.lr, "largest learning rate");
  add_default("--warmup", o.warmup, "steps of rising learning rate");
  add_default("--weight-decay", o.weight_decay, "of matrices");
  add_default("--optimizer", rule, names(rules, "|"));
  auto* const stated = add_default("--state", state, names(states, "|"));
  auto* const precise =
      add_default("--precision", precision,
                  names(precisions, "|") + "\nof parameters, activations and gradients");
  auto* const stored = add_default(
      "--parameters", column,
      names(parameter_columns, "|") + "\nkept beside 16 bits: what fp32 has more, or 8 bits");
  auto* const scaled =
      add("--loss-scale", loss_scale,
          std::string{loss_scale_words} + " (default: dynamic for fp16, else none)");
  auto* const micro = add("--micro-batch", o.micro_batch,
                          "windows per pass; their gradients are summed (default: all)");
  auto* const summed = add_default("--accumulate-in", sum,
                                   names(sum_types, "|") + "\nof the sums over micro-batches");
  auto* const limited = add("--clip-norm", clip_norm, "largest norm of the gradients of a step");
  auto* const ranked =
      add("--clip-percentile", clip_percentile, "clip to this percentile of the last 100 norms");
  add_default("--beta1", o.beta1, "of adam and adamw");
  add_default("--beta2", o.beta2, "of adam and adamw");
  add_default("--eps", o.eps, "of adam and adamw");
  add_default("--momentum", o.momentum, "of momentum");
  add_default("--dropout", o.dropout, "share of elements, behind the embedding and in each block");
  add_default("--device", device, names(devices, "|"));
  add_default("--threads", o.threads, "of the host, for products, kernels and optimizer");
  group = "Memory";
  auto* const kept = add("--checkpoint", checkpoint,
                         std::string{checkpoint_words} +
                             " (default: none)\nwhich activations are kept, "
                             "and which computed again in the backward pass");
  app.add_flag(
         "--release", o.release,
         "step each stage as soon as its gradients are complete, in the memory of one stage;\n"
         "clips by the norm so far or of the step before, and micro-batches join Adam's moments")
      ->group(group);
  auto* const report = add("--checkpoint-report", svg, "show the schedule, and write it as SVG")
                           ->expected(0, 1)
                           ->type_name("[FILE.svg]");
  auto* const fitting = add("--fit", fit,
                            "bytes (12GiB) that the process may take: turns on, of what is not "
                            "given, whatever makes it fit");
  auto* const bounded = add("--memory-limit", memory_limit,
                            "bytes (12GiB) that the run's memory may not pass: it ends instead");
  group = "Output";
  add_default("--val-every", o.val_every, "steps between validations (0: at the end only)");
  auto* const logged = add("--log", log, "file that takes a JSON line per step");
  auto* const captured = add("--capture-gradients", gradients,
                             "file that takes the gradients of a few tensors at every step");
  auto* const saved = add("--save", save, "file for weights and states (safetensors), at the end");
  add_default("--save-every", o.save_every, "and after every so many steps (0: at the end only)");
  auto* const exported =
      add("--export", shared, "file for weights as transformers loads them, at the end");
  auto* const resumed = add("--resume", resume, "file that --save wrote, to go on from");
  add_default("--sample", o.sample, "tokens of text to generate at the end");
  add_default("--temperature", o.temperature, "of the sample");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {.train = std::nullopt, .text = app.help()};
  } catch (const CLI::ParseError& wrong) {
    throw user_error(one_line(wrong.what()) + " (gpt2_train --help lists the options)");
  }

  auto const of_model = choose(models, "--model", model);
  if (*begun) o.init = init;
  auto const asked = given.over(of_model);
  o.sizes = o.init ? sizes_in(*o.init, *named ? all_of(asked) : given) : asked;
  o.tokens = choose(token_kinds, "--tokens", tokens);
  if (!*seq) o.seq = o.sizes.context;
  o.device = choose(devices, "--device", device);
  o.optimizer = choose(rules, "--optimizer", rule);
  o.state = choose(states, "--state", state);
  o.precision = choose(precisions, "--precision", precision);
  o.parameters = choose(parameter_columns, "--parameters", column);
  o.accumulate_in = choose(sum_types, "--accumulate-in", sum);
  if (!*micro) o.micro_batch = o.batch;
  if (*scaled)
    o.loss_scale = parse_loss_scale(loss_scale);
  else if (o.precision == precision_choice::fp16)
    o.loss_scale.emplace();
  if (*limited) o.clip_norm = clip_norm;
  if (*ranked) o.clip_percentile = clip_percentile;
  o.data.assign(data.begin(), data.end());
  if (*logged) o.log = log;
  if (*captured) o.captured_gradients = gradients;
  if (*saved) o.save = save;
  if (*exported) o.exported = shared;
  if (*resumed) o.resume = resume;
  if (*kept) o.checkpoint = parse_checkpoint(checkpoint);
  if (o.release && *summed)
    throw user_error("--release cannot be given with --accumulate-in: it has no sums");
  o.checkpoint_report = static_cast<bool>(*report);
  if (!svg.empty()) o.checkpoint_svg = svg;
  if (*fitting) o.fit = parse_bytes("--fit", fit);
  o.fixed = {.precision = static_cast<bool>(*precise),
             .state = static_cast<bool>(*stated),
             .parameters = static_cast<bool>(*stored),
             .micro_batch = static_cast<bool>(*micro),
             .accumulate_in = static_cast<bool>(*summed),
             .checkpoint = static_cast<bool>(*kept)};
  if (*bounded) o.memory_limit = parse_bytes("--memory-limit", memory_limit);
  check(o);
  return {.train = o, .text = {}};
}

}  // namespace gpt2
