#include "checkpointing.hpp"

#include <memfit/checkpoint/plan.hpp>
#include <memfit/core/error.hpp>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "../shared/bytes.hpp"
#include "user_error.hpp"

namespace gpt2 {

namespace checkpoint = memfit::checkpoint;

namespace {

// Of the memory that is free, what is left to others and to what grows later.
constexpr double margin = 0.1;

[[noreturn]] void refuse(const std::string& text, const char* wanted) {
  throw user_error("--checkpoint is '" + text + "', but must be " + wanted);
}

index count_in(const std::string& text, std::string_view number) {
  index count = 0;
  auto const* const end = number.data() + number.size();
  auto const [rest, error] = std::from_chars(number.data(), end, count);
  if (error != std::errc{} || rest != end || count < 1)
    refuse(text, "followed by a whole number, at least 1");
  return count;
}

checkpoint_choice budget_in(const std::string& text, std::string_view amount) {
  constexpr auto wanted = "followed by bytes, such as 500MB or 2GiB, or by a share, such as 25%";
  checkpoint_choice choice{.kind = checkpoint_kind::budget, .text = text};
  auto const found = shared::quantity_in(amount);
  if (!found) refuse(text, wanted);
  if (found->unit == "%") {
    choice.share = found->number / 100;
    if (!(choice.share > 0)) refuse(text, wanted);
    return choice;
  }
  auto const bytes = shared::bytes_of(*found);
  if (!bytes) refuse(text, wanted);
  choice.number = *bytes;
  return choice;
}

// Every stage runs once, in the variant that saves least.
checkpoint::schedule keep_least(const checkpoint::chain& stages) {
  auto plan = checkpoint::keep_all(stages);
  for (auto& a : plan.actions)
    if (a.what == checkpoint::act::run)
      a.variant = static_cast<int>(stages[static_cast<std::size_t>(a.index)].variants.size()) - 1;
  return checkpoint::checked(stages, plan.actions);
}

checkpoint::schedule within_free(const checkpoint::chain& stages, index free_bytes) {
  auto all = checkpoint::keep_all(stages);
  auto const usable = static_cast<index>((1 - margin) * static_cast<double>(free_bytes));
  return all.peak <= usable ? all : checkpoint::within(stages, usable);
}

checkpoint::schedule within_budget(const checkpoint_choice& choice,
                                   const checkpoint::chain& stages) {
  if (choice.share == 0) return checkpoint::within(stages, choice.number);
  auto const all = static_cast<double>(checkpoint::keep_all(stages).peak);
  return checkpoint::within(stages, static_cast<index>(choice.share * all));
}

checkpoint::schedule plan(const checkpoint_choice& choice, const checkpoint::chain& stages,
                          const std::function<index()>& free_bytes) {
  switch (choice.kind) {
    case checkpoint_kind::none:
      return checkpoint::keep_all(stages);
    case checkpoint_kind::selective:
      return keep_least(stages);
    case checkpoint_kind::all:
      return checkpoint::every(stages, 1);
    case checkpoint_kind::sqrt:
      return checkpoint::sqrt_n(stages);
    case checkpoint_kind::every:
      return checkpoint::every(stages, choice.number);
    case checkpoint_kind::revolve:
      return checkpoint::revolve(stages, choice.number);
    case checkpoint_kind::budget:
      return within_budget(choice, stages);
    case checkpoint_kind::planned:
      return choice.planned(stages);
    case checkpoint_kind::automatic:
      return within_free(stages, free_bytes());
  }
  return {};
}

}  // namespace

checkpoint_choice parse_checkpoint(const std::string& text) {
  using enum checkpoint_kind;
  for (auto const& [word, kind] :
       {std::pair{"none", none}, std::pair{"selective", selective}, std::pair{"all", all},
        std::pair{"sqrt", sqrt}, std::pair{"auto", automatic}})
    if (text == word) return {.kind = kind, .text = text};
  auto const after = [&](std::string_view word) -> std::optional<std::string_view> {
    if (!text.starts_with(word)) return std::nullopt;
    return std::string_view{text}.substr(word.size());
  };
  if (auto const k = after("every:")) return {every, count_in(text, *k), 0, text};
  if (auto const s = after("revolve:")) return {revolve, count_in(text, *s), 0, text};
  if (auto const b = after("budget:")) return budget_in(text, *b);
  refuse(text, ("one of " + std::string{checkpoint_words}).c_str());
}

checkpoint_choice planned_checkpoint(make_schedule how) {
  return {.kind = checkpoint_kind::planned, .text = "fit", .planned = std::move(how)};
}

checkpoint::schedule plan_for(const checkpoint_choice& choice, const checkpoint::chain& stages,
                              const std::function<index()>& free_bytes) {
  try {
    return plan(choice, stages, free_bytes);
  } catch (const memfit::argument_error& impossible) {
    throw user_error("--checkpoint " + choice.text + ": " + impossible.what());
  }
}

}  // namespace gpt2
