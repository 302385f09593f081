// The dry run of layerwise rules on the host: reads the columns that the direction needs, and gives
// each tensor its norms. Used by host before the step of such a rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/exec/dry_run.hpp"
#include "memfit/exec/host/block.hpp"
#include "memfit/exec/host/norm.hpp"

namespace memfit::detail {

/// Elements first … last of one tensor, `first` at the beginning of a part, as a body for run_on.
template <class Rule, class Format, class Column>
struct dry_run_body {
  step_item<Rule> const& item;
  std::int64_t first, last;
  float multiplier, limit;
  layer_squares* parts;  // of the whole tensor

  template <class F>
  void operator()() const {
    using V = std::conditional_t<directs_value<Rule, F>, F, float>;
    for (auto i = first; i < last; i += sum_part)
      parts[i / sum_part] = part<V>(i, (std::min)(last, i + sum_part));
  }

 private:
  static constexpr bool keeps = !std::is_void_v<typename Column::kept>;
  static constexpr int slots = slot_count<Rule>;
  static constexpr int arrays = slots > 0 ? slots : 1;
  static constexpr auto all_slots() { return std::make_integer_sequence<int, slots>(); }

  struct values {
    alignas(64) float parameter[sum_part];
    alignas(64) float direction[sum_part];
  };

  template <class F>
  layer_squares part(std::int64_t begin, std::int64_t end) const {
    values x;
    auto i = begin;
    for (; i + ops<F>::width <= end; i += ops<F>::width) measure<F>(i, x, i - begin, all_slots());
    for (; i < end; ++i) measure<float>(i, x, i - begin, all_slots());
    for (; i < begin + sum_part; ++i) x.parameter[i - begin] = x.direction[i - begin] = 0.0f;
    return {sum_of_squares(x.parameter), sum_of_squares(x.direction)};
  }

  template <class F, int... I>
  void measure(std::int64_t i, values& x, std::int64_t at,
               std::integer_sequence<int, I...> sequence) const {
    F const p = parameter<F>(i);
    F const g = product(load_scalars<F>(item.gradient, item.gradient_kind, i), F(multiplier));
    F const taken = limited(g, limit);
    F s[arrays] = {};
    F u;
    if constexpr (directs_by_slots<Rule>) {
      ((s[I] = moment<F, I>(i)), ...);
      u = item.constants.direction(p, taken, s);
    } else {
      u = item.constants.direction(p, taken);
    }
    auto const all = counts<Rule, Format>(p, g, u, s, sequence);
    ops<F>::store(x.parameter + at, F(select(all, p, F(0.0f))));
    ops<F>::store(x.direction + at, F(select(all, u, F(0.0f))));
  }

  template <class F>
  F parameter(std::int64_t i) const {
    auto const visible = ops<F>::load(static_cast<typename Column::code const*>(item.visible) + i);
    if constexpr (keeps)
      return Column::decode(visible,
                            ops<F>::load(static_cast<typename Column::kept const*>(item.kept) + i));
    else
      return Column::decode(visible, visible);
  }
  template <class F, int I>
  F moment(std::int64_t i) const {
    using S = slot_storage<Rule, Format, I>;
    auto const* const codes = static_cast<typename S::code const*>(item.moments[I].codes);
    float const scale = S::load_scale(item.moments[I].scales, i / S::block);
    return !S::scaled || ordinary_scale(bits(scale)) ? load_moment<S, false>(codes, i, F(scale))
                                                     : load_moment<S, true>(codes, i, F(scale));
  }
};

/// The norms of a tensor of n parts.
inline layer_norms norms_of(layer_squares const* parts, std::int64_t n) {
  double parameter[sums] = {}, direction[sums] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    parameter[i % sums] += parts[i].parameter;
    direction[i % sums] += parts[i].direction;
  }
  return {std::sqrt(join(parameter)), std::sqrt(join(direction))};
}

/// Room for the sums of the parts of many tensors.
class layer_parts {
 public:
  template <class Item>
  layer_parts(Item const* items, std::int64_t count) : first_{0} {
    for (std::int64_t i = 0; i < count; ++i)
      first_.push_back(first_.back() + sum_parts(items[i].active()));
    sums_.resize(static_cast<std::size_t>(first_.back()));
  }
  layer_squares* of(std::int64_t index) {
    return sums_.data() + first_[static_cast<std::size_t>(index)];
  }

 private:
  std::vector<std::int64_t> first_;
  std::vector<layer_squares> sums_;
};

}  // namespace memfit::detail
