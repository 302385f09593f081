// One step of a rule on buffers that the caller owns: stateless.
// Used by frameworks that keep the moments and the step counter themselves.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "memfit/core/check.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit {

namespace detail {

/// Every buffer of a stateless step: present where it must be, and apart from all others.
template <class Rule, class Format, class Column>
class step_buffers {
 public:
  step_buffers(std::string_view name, std::int64_t count) : name_(name), count_(count) {}

  void add(char const* what, void const* data, std::int64_t count, std::int64_t size) {
    if (count > 0 && data == nullptr)
      refuse("step", name_,
             std::string(what) + " has null data and " + std::to_string(count) + " elements");
    auto const where = extent_of(data, count, size);
    for (int i = 0; i < used_; ++i)
      if (where.overlaps(extents_[i]))
        refuse(
            "step", name_,
            std::string(what) + " of " + std::to_string(count) + " elements overlaps " + names_[i]);
    names_[used_] = what;
    extents_[used_++] = where;
  }

  void add_kept(void const* kept) {
    using K = typename Column::kept;
    if constexpr (!std::is_void_v<K>)
      add("the kept buffer", kept, count_, static_cast<std::int64_t>(sizeof(K)));
  }

  template <int... I>
  void add_moments([[maybe_unused]] moment_ref const* moments, std::integer_sequence<int, I...>) {
    (add_moment<I>(moments[I]), ...);
  }

 private:
  template <int I>
  void add_moment(moment_ref const& m) {
    using S = slot_storage<Rule, Format, I>;
    add("the codes of a moment", m.codes, S::code_bytes(count_) / S::code_size, S::code_size);
    if constexpr (S::scaled)
      add("the scales of a moment", m.scales, block_count(count_, S::block), S::scale_size);
  }

  std::string_view name_;
  std::int64_t count_;
  static constexpr int most = 3 + 2 * slot_count<Rule>;
  char const* names_[most] = {};
  extent extents_[most] = {};
  int used_ = 0;
};

}  // namespace detail

/// Updates a parameter and its moments in place, in one pass.
///
/// `moments`: one per slot of the rule, in order, as slot_storage<Rule, Format, slot> lays it out:
/// n codes and, for scaled formats, the scales of their blocks. New moments start as the codec's
/// `zero` (in either half of a byte that two share) with scale 0.
/// `kept`: the parameter column's second buffer, or null. `step_number` counts from 1; the rule's
/// constants depend on it alone, so that parts of one step agree whatever their order. `seed` and
/// `id` key the noise of stochastic columns and formats. An element whose gradient or new moment is
/// not finite is left as it was. Throws argument_error or hyperparameter_error before anything is
/// changed.
template <format Format, class Param = fp32, rule Rule, executor E, tensor P, tensor G>
requires stores_rule<Rule, Format>
void step(E const& exec, Rule const& r, std::int64_t step_number, P&& parameter, G&& gradient,
          std::initializer_list<moment_ref> moments, gate g = {}, void* kept = nullptr,
          std::uint64_t seed = 0, std::int64_t id = 0) {
  using column = column_for<Param>;
  detail::require_current("step", g);
  static_assert(kind_of<element_of<P>> == kind_of<typename column::element>,
                "memfit::step: the parameter's element type is that of its column");
  auto const p = ref(parameter);
  auto const d = ref(gradient);
  detail::require_data("step", "the parameter", p.name, p);
  detail::require_data("step", "the gradient", p.name, d);
  detail::require_count("step", "the gradient", p.name, d, p.count);
  if (static_cast<int>(moments.size()) != slot_count<Rule>)
    detail::refuse("step", p.name,
                   std::to_string(moments.size()) + " moments, the rule has " +
                       std::to_string(slot_count<Rule>));
  detail::step_buffers<Rule, Format, column> buffers(p.name, p.count);
  buffers.add("the parameter", p.data, p.count, bytes_of(kind_of<element_of<P>>));
  buffers.add("the gradient", d.data, d.count, bytes_of(kind_of<element_of<G>>));
  buffers.add_kept(kept);
  buffers.add_moments(moments.begin(), std::make_integer_sequence<int, slot_count<Rule>>());
  if (step_number < 1)
    detail::refuse("step", p.name, "step " + std::to_string(step_number) + ", steps count from 1");
  if (char const* const bad = invalid_hyperparameter(r))
    throw hyperparameter_error("memfit::step: " + detail::called(p.name) + " of " +
                               std::to_string(p.count) + " elements: " + bad +
                               " is out of range or not finite");
  step_item<Rule> item{};
  item.visible = p.data;
  item.kept = kept;
  item.gradient = d.data;
  item.gradient_kind = kind_of<element_of<G>>;
  item.count = p.count;
  int slot = 0;
  for (auto const& m : moments) item.moments[slot++] = m;
  item.constants = r.at(step_number);
  item.key = make_noise_key(seed, step_number, id);
  detail::naming("step", p.name, p.count, 1,
                 [&] { exec.template step<Rule, Format, column>(item, g); });
  g.mark_stepped();
}

}  // namespace memfit
