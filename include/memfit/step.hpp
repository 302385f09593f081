// One step of a rule on buffers that the caller owns: stateless.
// Used by frameworks that keep the moments and the step counter themselves.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "memfit/core/check.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit {

/// Updates a parameter and its moments in place, in one pass.
///
/// `moments`: one per slot of the rule, in order: n codes of the slot's codec and, for scaled
/// formats, block_count<Format>(n) scales. New moments start as the codec's `zero` with scale 0.
/// `kept`: the parameter column's second buffer, or null. `step_number` counts from 1; the rule's
/// constants depend on it alone, so that parts of one step agree whatever their order. `seed` and
/// `id` key the noise of stochastic columns. An element whose gradient or new moment is not finite
/// is left as it was. Throws argument_error or hyperparameter_error before anything is changed.
template <format Format, class Param = fp32, rule Rule, executor E, tensor P, tensor G>
void step(E const& exec, Rule const& r, std::int64_t step_number, P&& parameter, G const& gradient,
          std::initializer_list<moment_ref> moments, gate g = {}, void* kept = nullptr,
          std::uint64_t seed = 0, std::int64_t id = 0) {
  using column = column_for<Param>;
  static_assert(std::is_same_v<element_of<P>, typename column::element>,
                "memfit::step: the parameter's element type is that of its column");
  auto const p = ref(parameter);
  auto const d = ref(gradient);
  detail::require_data("step", "the parameter", p.name, p);
  detail::require_data("step", "the gradient", p.name, d);
  detail::require_count("step", "the gradient", p.name, d, p.count);
  detail::require_disjoint("step", p.name, "the parameter", p, "the gradient", d);
  if (static_cast<int>(moments.size()) != slot_count<Rule>)
    detail::refuse("step", p.name,
                   std::to_string(moments.size()) + " moments, the rule has " +
                       std::to_string(slot_count<Rule>));
  if (step_number < 1)
    detail::refuse("step", p.name, "step " + std::to_string(step_number) + ", steps count from 1");
  if (char const* const bad = invalid_hyperparameter(r))
    throw hyperparameter_error("memfit::step: " + detail::called(p.name) + " of " +
                               std::to_string(p.count) + " elements: " + bad +
                               " is out of range or not finite");
  if (!std::is_void_v<typename column::kept> && kept == nullptr && p.count > 0)
    detail::refuse("step", p.name, "the column's kept buffer is null");
  step_item<Rule> item{};
  item.visible = p.data;
  item.kept = kept;
  item.gradient = d.data;
  item.gradient_kind = kind_of<element_of<G const>>;
  item.count = p.count;
  int slot = 0;
  for (auto const& m : moments) {
    if (p.count > 0 && m.codes == nullptr)
      detail::refuse("step", p.name, "moment " + std::to_string(slot) + " has null codes");
    item.moments[slot++] = m;
  }
  item.constants = r.at(step_number);
  item.key = make_noise_key(seed, step_number, id);
  exec.template step<Rule, Format, column>(&item, 1, g, nullptr);
}

}  // namespace memfit
