#include "options.hpp"

#include <memfit/fit/transformer.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>

#include "../gpt2/user_error.hpp"
#include "../shared/bytes.hpp"
#include "config_file.hpp"
#include "offers.hpp"

namespace advice {

namespace fit = memfit::fit;
using gpt2::user_error;

namespace {

constexpr const char* footer =
    "Seconds are estimates, from published rates of the device. Exit status: 0 where something "
    "fits, 3 where nothing\n"
    "does, 2 for mistakes.";

fit::precision precision_named(const std::string& name) {
  using enum fit::precision;
  for (auto const& [known, value] :
       {std::pair{"exact", exact}, std::pair{"24", bits24}, std::pair{"16", bits16}})
    if (name == known) return value;
  throw user_error("--precision: '" + name + "' is none of exact, 24, 16");
}

std::string known_models() {
  std::string names;
  for (auto const& shape : fit::known_models()) (names += names.empty() ? "" : "|") += shape.name;
  return names;
}

void need_size(const char* option, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most)
    throw user_error(std::string{option} + " is " + std::to_string(value) +
                     ", but must be at least 1 and at most " + std::to_string(most));
}

std::int64_t memory_in(const std::string& text) {
  auto const bytes = shared::bytes_in(text);
  if (!bytes)
    throw user_error("--memory is '" + text + "', but must be bytes, such as 12GiB or 500MB");
  return *bytes;
}

// The context, but for the few rows that tables of positions may have beside it, as RoBERTa's.
std::int64_t default_seq(fit::transformer_shape const& shape) {
  return shape.context < 8 ? shape.context : shape.context / 8 * 8;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

command_line parse(int argc, const char* const* argv) {
  options o;
  std::string model, config, device = "cpu", memory, precision = "24";
  std::int64_t top = static_cast<std::int64_t>(o.top);
  o.wanted.batch = 8;

  CLI::App app{
      "Does it fit, and what do I turn on? Plans the training of a model in the memory of "
      "a device.",
      "memfit_fit"};
  app.footer(footer);
  auto* const named = app.add_option("--model", model, known_models());
  auto* const read = app.add_option(
      "--config", config,
      "config.json of a Hugging Face model of type " + std::string{config_types} + " instead");
  auto* const on = app.add_option("--device", device, fit::known_devices());
  auto* const limited = app.add_option("--memory", memory,
                                       "bytes to plan for, such as 12GiB (default: the device's)");
  app.add_option("--batch", o.wanted.batch, "windows per step")->capture_default_str();
  auto* const seq =
      app.add_option("--seq", o.wanted.seq, "tokens per window (default: the context)");
  app.add_option("--precision", precision,
                 "exact|24|16: the results of fp32; parameters of 24 bits and moments of 8, or "
                 "more; or less")
      ->capture_default_str();
  app.add_flag("--clips", o.wanted.clips, "gradients are clipped by their norm");
  app.add_option("--top", top, "plans to show")->capture_default_str();
  app.add_flag("--json", o.json, "print JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {.question = std::nullopt, .text = app.help()};
  } catch (const CLI::ParseError& wrong) {
    throw user_error(one_line(wrong.what()) + " (memfit_fit --help lists the options)");
  }

  if (static_cast<bool>(*named) == static_cast<bool>(*read))
    throw user_error("one of --model and --config must be given");
  if (!*on && !*limited) throw user_error("--device or --memory must be given");
  o.shape = *named ? fit::known_model(model) : shape_in_file(config);
  auto const bytes = *limited ? memory_in(memory) : 0;
  o.device = fit::device_named(device, bytes);
  if (!*seq) o.wanted.seq = default_seq(o.shape);
  constexpr std::int64_t largest = std::int64_t{1} << 20;
  need_size("--batch", o.wanted.batch, largest);
  need_size("--seq", o.wanted.seq, largest);
  need_size("--top", top, 1000);
  o.wanted.precision = precision_named(precision);
  o.wanted.offered = all_offers();
  o.top = static_cast<std::size_t>(top);
  return {.question = o, .text = {}};
}

}  // namespace advice
