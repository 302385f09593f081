// What an update rule is: hyper-parameters, slots, and the arithmetic of one step on registers.
// Used by every rule, by the drivers, and by users who write a rule of their own.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <utility>

#include "memfit/core/config.hpp"
#include "memfit/core/lanes.hpp"
#include "memfit/core/slot.hpp"
#include "memfit/rule/hyperparameters.hpp"

namespace memfit {

/// Number of moments that a rule keeps per parameter.
template <class Rule>
inline constexpr int slot_count = static_cast<int>(std::size(Rule::slots));

/// The constants of one step, as the rule computes them.
template <class Rule>
using constants_of = decltype(std::declval<Rule const&>().at(std::int64_t{1}));

namespace detail {

template <class Constants, class F, int N>
concept updates = requires(Constants const& k, F& p, F g, F (&s)[N]) {
  k(p, g, s);
};
template <class Constants, class F>
concept updates_without_slots = requires(Constants const& k, F& p, F g) {
  k(p, g);
};

/// Whether the constants' call operator fits the rule's slots for the value type F.
template <class Rule, class F>
constexpr bool takes_one_value_per_slot() {
  if constexpr (slot_count<Rule> == 0)
    return updates_without_slots<constants_of<Rule>, F>;
  else
    return updates<constants_of<Rule>, F, slot_count<Rule>>;
}

/// The same as a value, which a device function may ask for.
template <class Rule, class F>
inline constexpr bool fits_value = takes_one_value_per_slot<Rule, F>();

}  // namespace detail

/// Norms over the elements of one tensor, all that a layerwise rule may know of the others.
struct layer_norms {
  double parameter;  ///< of the parameters before the step
  double direction;  ///< of what the rule calls the direction
};

/// A layerwise rule's constants have `with(layer_norms)`, which gives the constants for one tensor.
template <class Rule>
concept layerwise_rule = requires(constants_of<Rule> const& k, layer_norms const& n) {
  k.with(n);
};

/// What a step brings of a window whose micro-batches join the moments one by one, without sums in
/// memory of their own: this part of it.
struct window_part {
  std::int64_t number = 0;  ///< parts that the tensor has had; the first counts the step and decays
  float share = 1;          ///< of the window's items; the shares of all parts sum to 1
  bool last = true;         ///< moves the parameter
};

/// A folding rule's constants have `part(window_part)`, which gives the constants of one part.
template <class Rule>
concept folding_rule = requires(constants_of<Rule> const& k, window_part const& w) {
  { k.part(w) } -> std::same_as<constants_of<Rule>>;
};

namespace detail {

/// The constants of a part of a window; other rules know whole windows alone.
template <class Rule>
MEMFIT_HD constants_of<Rule> part_of(constants_of<Rule> const& k,
                                     [[maybe_unused]] window_part const& w) {
  if constexpr (folding_rule<Rule>)
    return k.part(w);
  else
    return k;
}

template <class Constants, class F>
concept directs_without_slots = requires(Constants const& k, F const& p, F const& g) {
  { k.direction(p, g) } -> std::same_as<F>;
};
template <class Constants, class F, int N>
concept directs = requires(Constants const& k, F const& p, F const& g, F (&s)[N]) {
  { k.direction(p, g, s) } -> std::same_as<F>;
};

/// Whether the direction depends on the moments, too.
template <class Rule>
inline constexpr bool directs_by_slots = !directs_without_slots<constants_of<Rule>, float>;

template <class Rule, class F>
constexpr bool gives_direction() {
  if constexpr (!directs_by_slots<Rule> || slot_count<Rule> == 0)
    return directs_without_slots<constants_of<Rule>, F>;
  else
    return directs<constants_of<Rule>, F, slot_count<Rule>>;
}
/// Whether the constants give a direction for the value type F.
template <class Rule, class F>
inline constexpr bool directs_value = gives_direction<Rule, F>();

template <class Rule>
constexpr bool is_measurable() {
  if constexpr (layerwise_rule<Rule>)
    return directs_value<Rule, float>;
  else
    return true;
}

}  // namespace detail

/// A rule: an aggregate of hyper-parameters with `static constexpr slots` and `at(step)`, which
/// returns the constants of a step counted from 1. These are called as `k(p, g, s)`, where `s` is a
/// reference to an array of one value per slot; `k(p, g)` without slots. A product that feeds a sum
/// is written as fma: left to the compiler, it may be rounded once or twice, and bits would differ.
/// To step on a CUDA device, `at` and the call are MEMFIT_HD; power, product and sqrt of
/// core/scalar.hpp give `at` the same bits there. To be chosen at run time or saved, a rule has a
/// name (`static constexpr char const* name = "adamw";`) and lists its hyper-parameters
/// (`memfit::hyperparameter_list hyperparameters() { return {{"lr", lr}, {"beta", beta}}; }`).
///
/// A layerwise rule's step depends on norms over the whole tensor besides. Its constants offer
/// `k.direction(p, g, s)`, which gives a value per element and may take the gradient into the
/// moments as the step does, or `k.direction(p, g)` where it needs no moments; and `k.with(norms)`,
/// the constants once the norms of parameters and directions are known, whose call makes the step.
/// Before the step itself the driver runs `direction` dry, which stores nothing.
///
/// A rule folds the gradients of micro-batches into its moments where its constants have
/// `k.part(window_part)`: constants of the same type with which part 0 decays the moments, every
/// part adds its share of the new, and none but the last moves the parameter.
template <class Rule>
concept rule = requires(Rule const& r) {
  std::size(Rule::slots);
  r.at(std::int64_t{1});
  requires detail::takes_one_value_per_slot<Rule, float>();
  requires detail::is_measurable<Rule>();
};

/// The name of the first hyper-parameter outside its range, or null. A rule offers it as
/// `char const* invalid() const`; a rule without it is taken as valid.
template <class Rule>
char const* invalid_hyperparameter(Rule const& r) {
  if constexpr (requires { r.invalid(); })
    return r.invalid();
  else
    return nullptr;
}

namespace detail {

/// At least zero, and finite as a float; false for a NaN.
inline bool finite_non_negative(double x) {
  return x >= 0.0 && x <= 3.4028234e38;
}
/// In [0, 1).
inline bool decay_rate(double x) {
  return x >= 0.0 && x < 1.0;
}

}  // namespace detail

}  // namespace memfit
