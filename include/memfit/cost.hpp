// What rules, state formats and parameter columns take, by the functions that allocate.
// Used by whoever describes a training configuration for fit/estimate.hpp.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "memfit/description.hpp"
#include "memfit/exec/concept.hpp"
#include "memfit/fit/training.hpp"
#include "memfit/names.hpp"
#include "memfit/release.hpp"

namespace memfit {

namespace detail {

template <class Rule, class Format, int I>
fit::moment_cost moment_cost_of() {
  using stored = slot_storage<Rule, Format, I>;
  return {Rule::slots[I].name, &stored::code_bytes, &stored::scale_bytes,
          &slot_storage<Rule, fp32, I>::code_bytes};
}

template <class Rule, class Format, int... I>
constexpr std::int64_t most_folded(std::integer_sequence<int, I...>) {
  bool const narrow =
      ((slot_storage<Rule, Format, I>::scaled && slot_storage<Rule, Format, I>::scale_size == 2) ||
       ...);
  return narrow ? most_folded_in_narrow_scales : INT64_MAX;
}

}  // namespace detail

/// What optimizer<Rule, Format> takes for moments, and for what its tensors share in the host's
/// memory; on CUDA there is a table besides, some 200 bytes per tensor.
template <rule Rule, format Format>
requires stores_rule<Rule, Format> && named<Rule> && named<Format> fit::state_cost cost_of() {
  fit::state_cost cost{.rule = name_of<Rule>::value(),
                       .format = name_of<Format>::value(),
                       .moments = {},
                       .folds = folding_rule<Rule>,
                       .most_folded = detail::most_folded<Rule, Format>(
                           std::make_integer_sequence<int, slot_count<Rule>>()),
                       .shared_bytes = &detail::shared_bytes};
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (cost.moments.push_back(detail::moment_cost_of<Rule, Format, I>()), ...);
  }
  (std::make_integer_sequence<int, slot_count<Rule>>());
  return cost;
}

/// What a parameter column, the third argument of optimizer, shows to the model and keeps beside.
template <named Param>
requires parameter_column<column_for<Param>> fit::column_cost cost_of_column() {
  using column = column_for<Param>;
  fit::column_cost cost{.name = name_of<Param>::value(),
                        .element_bytes = sizeof(typename column::element)};
  if constexpr (!std::is_void_v<typename column::kept>)
    cost.kept_bytes = sizeof(typename column::kept);
  return cost;
}

}  // namespace memfit
