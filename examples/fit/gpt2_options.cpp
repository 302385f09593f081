#include "gpt2_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "../gpt2/choices.hpp"

namespace advice {

namespace fit = memfit::fit;

namespace {

template <class Table>
auto find(Table const& table, std::string_view name) -> std::optional<decltype(table[0].value)> {
  auto const at = std::find_if(table.begin(), table.end(),
                               [&](auto const& entry) { return entry.name == name; });
  return at == table.end() ? std::nullopt : std::optional{at->value};
}

struct stored {
  std::string_view name;
  gpt2::precision_choice precision;
  gpt2::column_choice column;
};

constexpr std::array columns{
    stored{"fp32", gpt2::precision_choice::fp32, gpt2::column_choice::exact},
    stored{"split<bf16>", gpt2::precision_choice::bf16, gpt2::column_choice::exact},
    stored{"corrected<bf16>", gpt2::precision_choice::bf16, gpt2::column_choice::corrected}};

// Empty where gpt2_train does not have the combination.
std::optional<words> storage_options(fit::column_cost const& column,
                                     fit::state_cost const& states) {
  auto const stored_in = std::find_if(columns.begin(), columns.end(),
                                      [&](stored const& s) { return s.name == column.name; });
  auto const state = find(gpt2::states, states.format);
  if (states.rule != "adamw" || stored_in == columns.end() || !state ||
      !gpt2::is_offered(gpt2::rule_choice::adamw, stored_in->precision, stored_in->column, *state))
    return std::nullopt;
  words options;
  if (stored_in->precision != gpt2::precision_choice::fp32)
    options = {"--precision", std::string{name_of(gpt2::precisions, stored_in->precision)}};
  if (stored_in->column != gpt2::column_choice::exact)
    options.insert(options.end(), {"--parameters", "corrected"});
  if (*state != gpt2::state_choice::fp32) options.insert(options.end(), {"--state", states.format});
  return options;
}

}  // namespace

std::optional<words> gpt2_options_of(fit::plan const& p) {
  auto const& t = p.training;
  auto const storage = storage_options(t.column, t.states);
  if (!storage || t.offloads_states) return std::nullopt;
  words options{"--batch", std::to_string(t.batch), "--seq", std::to_string(t.seq)};
  auto const add = [&](words const& more) {
    options.insert(options.end(), more.begin(), more.end());
  };
  add(*storage);
  if (t.micro_batch < t.batch) add({"--micro-batch", std::to_string(t.micro_batch)});
  if (t.accumulation == fit::accumulation::bf16) add({"--accumulate-in", "bf16"});
  if (t.gradient_release) add({"--release"});
  if (p.kept == fit::activations::selective) add({"--checkpoint", "selective"});
  if (p.kept == fit::activations::checkpoints)
    add({"--checkpoint", "budget:" + std::to_string(p.bytes.activations)});
  return options;
}

}  // namespace advice
