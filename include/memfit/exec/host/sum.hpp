// Adding tensors to sums in a parameter column on the host, and so converting them.
// Used by host for gradient accumulation and for casts.
#pragma once

#include <cstdint>

#include "memfit/exec/host/block.hpp"
#include "memfit/exec/list.hpp"

namespace memfit::detail {

/// Elements first … last of one tensor, as a body for run_on.
template <class Column>
struct sum_body {
  sum_item const& item;
  sum_call const& call;
  std::int64_t first, last;

  template <class F>
  void operator()() const {
    // A task's elements share the upper half of their numbers.
    run<F>(call.factor(), fold_high(call.key(item), first));
  }

 private:
  static constexpr bool keeps = !std::is_void_v<typename Column::kept>;
  using code = typename Column::code;
  using kept_code = std::conditional_t<keeps, typename Column::kept, code>;

  template <class F>
  void run(float weight, noise_key key) const {
    if (item.source == nullptr) return add<F, no_source>(weight, key);
    if (item.source_kind == scalar_kind::fp32) return add<F, fp32_codec>(weight, key);
    if (item.source_kind == scalar_kind::bf16) return add<F, bf16_codec>(weight, key);
    add<F, fp16_codec>(weight, key);
  }
  template <class F, class Source>
  void add(float weight, noise_key key) const {
    if (call.overwrite) return add<F, Source, true>(weight, key);
    if constexpr (!std::is_same_v<Source, no_source>) add<F, Source, false>(weight, key);
  }

  template <class F, class Source, bool Overwrite>
  void add(float weight, noise_key key) const {
    overflow_watch<F, Column::overflow> watch;
    overflow_watch<float, Column::overflow> rest;
    auto i = first;
    for (; i + ops<F>::width <= last; i += ops<F>::width)
      watch.see(add_at<F, Source, Overwrite>(i, weight, key));
    for (; i < last; ++i) rest.see(add_at<float, Source, Overwrite>(i, weight, key));
    if (call.nonfinite != nullptr && (watch.seen() || rest.seen()))
      __atomic_store_n(call.nonfinite, 1u, __ATOMIC_RELAXED);
  }

  template <class F, class Source, bool Overwrite>
  F add_at(std::int64_t i, float weight, noise_key key) const {
    auto* const visible = static_cast<code*>(item.visible) + i;
    auto* const kept = static_cast<kept_code*>(item.kept) + i;
    F const g = take<F, Source>(i, weight);
    F sum = g;
    if constexpr (Overwrite) {
      if (weight != 1.0f) sum = product(g, F(weight));
    } else if constexpr (keeps) {
      sum = fma(g, F(weight), Column::decode(ops<F>::load(visible), ops<F>::load(kept)));
    } else {
      auto const before = ops<F>::load(visible);
      sum = fma(g, F(weight), Column::decode(before, before));
    }
    auto noisy = uint_of<F>(0u);
    if constexpr (Column::takes_noise)
      noisy = noise(key, ops<F>::iota(static_cast<std::uint32_t>(i)));
    auto const c = Column::encode(sum, noisy);
    ops<F>::store(visible, c.visible);
    if constexpr (keeps) ops<F>::store(kept, c.kept);
    return sum;
  }

  /// Reads elements of the source, and clears them where that is asked for.
  template <class F, class Source>
  F take(std::int64_t i, float weight) const {
    if constexpr (std::is_same_v<Source, no_source>) {
      return F(0.0f);
    } else {
      auto* const from = static_cast<typename Source::code*>(item.source) + i;
      F g = weight != 0.0f ? load_codes<Source, F>(from, 0) : F(0.0f);
      if (call.clear_source) ops<F>::store(from, uint_of<F>(0u));
      return g;
    }
  }

  struct no_source {};
};

/// Elements that one task adds: enough to hide the hand-out, little enough to share evenly.
inline constexpr std::int64_t sum_task = std::int64_t{1} << 16;

}  // namespace memfit::detail
