// The names that the command line offers for models, devices, rules and state formats.
// Used by the options, the trainer and the optimizers of the GPT-2 example.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "config.hpp"
#include "user_error.hpp"

namespace gpt2 {

enum class token_choice { bytes, uint16 };
enum class device_choice { host, cuda };
enum class rule_choice { adamw, adam, momentum, sgd };
enum class precision_choice { fp32, bf16, fp16 };
enum class column_choice { exact, corrected };
enum class sum_choice { fp32, bf16 };
enum class state_choice { fp32, bf16, root8, dynamic8, float8, linear8, packed4 };

template <class Value>
struct named {
  std::string_view name;
  Value value;
};

// Its vocabulary and its windows are those of all four.
constexpr config published(index layers, index heads, index channels) {
  return {.layers = layers,
          .heads = heads,
          .channels = channels,
          .context = 1024,
          .vocabulary = gpt2_vocabulary};
}

inline constexpr std::array models{
    named<config>{"tiny", {.layers = 2, .heads = 4, .channels = 128, .context = 128}},
    named<config>{"small", {.layers = 4, .heads = 4, .channels = 256, .context = 256}},
    named<config>{"gpt2", published(12, 12, 768)},
    named<config>{"gpt2-medium", published(24, 16, 1024)},
    named<config>{"gpt2-large", published(36, 20, 1280)},
    named<config>{"gpt2-xl", published(48, 25, 1600)}};

// What files of data hold.
inline constexpr std::array token_kinds{named<token_choice>{"bytes", token_choice::bytes},
                                        named<token_choice>{"uint16", token_choice::uint16}};

inline constexpr std::array devices{named<device_choice>{"host", device_choice::host},
                                    named<device_choice>{"cuda", device_choice::cuda}};

inline constexpr std::array rules{named<rule_choice>{"adamw", rule_choice::adamw},
                                  named<rule_choice>{"adam", rule_choice::adam},
                                  named<rule_choice>{"momentum", rule_choice::momentum},
                                  named<rule_choice>{"sgd", rule_choice::sgd}};

inline constexpr std::array states{named<state_choice>{"fp32", state_choice::fp32},
                                   named<state_choice>{"bf16", state_choice::bf16},
                                   named<state_choice>{"root8", state_choice::root8},
                                   named<state_choice>{"dynamic8", state_choice::dynamic8},
                                   named<state_choice>{"float8", state_choice::float8},
                                   named<state_choice>{"linear8", state_choice::linear8},
                                   named<state_choice>{"packed4", state_choice::packed4}};

// What parameters, activations and gradients are stored in.
inline constexpr std::array precisions{named<precision_choice>{"fp32", precision_choice::fp32},
                                       named<precision_choice>{"bf16", precision_choice::bf16},
                                       named<precision_choice>{"fp16", precision_choice::fp16}};

// Each combination takes seconds to compile, so that the program has those that people compare: all
// formats with AdamW and fp32, and everywhere fp32 and the 8-bit formats to begin with.
constexpr bool is_offered(rule_choice rule, precision_choice precision, state_choice state) {
  if (state == state_choice::fp32 || state == state_choice::root8) return true;
  bool const adamw = rule == rule_choice::adamw, exact = precision == precision_choice::fp32;
  return (adamw && exact) || ((adamw || exact) && state == state_choice::dynamic8);
}

// The same with what parameters are kept in.
constexpr bool is_offered(rule_choice rule, precision_choice precision, column_choice column,
                          state_choice state) {
  if (column == column_choice::exact) return is_offered(rule, precision, state);
  return rule == rule_choice::adamw && precision == precision_choice::bf16 &&
         (state == state_choice::fp32 || state == state_choice::root8);
}

// What is kept beside parameters of 16 bits: all that they lack of float's precision, or 8 bits.
inline constexpr std::array parameter_columns{
    named<column_choice>{"exact", column_choice::exact},
    named<column_choice>{"corrected", column_choice::corrected}};

// What the sums of the gradients of micro-batches are stored in.
inline constexpr std::array sum_types{named<sum_choice>{"fp32", sum_choice::fp32},
                                      named<sum_choice>{"bf16", sum_choice::bf16}};

template <class Table>
std::string names(const Table& table, std::string_view separator) {
  std::string list;
  for (auto const& entry : table) (list += list.empty() ? "" : separator) += entry.name;
  return list;
}

template <class Table>
auto choose(const Table& table, std::string_view option, std::string_view name) {
  for (auto const& entry : table)
    if (entry.name == name) return entry.value;
  throw user_error(std::string{option} + ": '" + std::string{name} + "' is none of " +
                   names(table, ", "));
}

template <class Table, class Value>
std::string_view name_of(const Table& table, Value value) {
  for (auto const& entry : table)
    if (entry.value == value) return entry.name;
  return {};
}

}  // namespace gpt2
