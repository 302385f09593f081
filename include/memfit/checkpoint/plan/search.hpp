// The search for the best persistent schedules of a chain, by dynamic programming over its parts.
// Used by within(), trade() and least_bytes().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/check.hpp"
#include "memfit/checkpoint/plan/curve.hpp"
#include "memfit/checkpoint/plan/emit.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"

namespace memfit::checkpoint::detail {

/// The second place: how many bytes of it may be taken, as levels that a search tells apart.
struct second_place {
  std::int64_t bandwidth = 1;
  std::vector<std::int64_t> levels;  ///< rising; the last is the whole place; none without a place
  bool holds_all = false;            ///< then there is one level

  bool exists() const { return !levels.empty(); }

  /// The level that is left when `bytes` of level `of` are taken; below 0 where there is none.
  std::ptrdiff_t without(std::ptrdiff_t of, std::int64_t bytes) const {
    if (holds_all) return of;
    auto const left = levels[static_cast<std::size_t>(of)] - bytes;
    return std::upper_bound(levels.begin(), levels.end(), left) - levels.begin() - 1;
  }
};

/// How much of the space of schedules a search visits.
struct search_size {
  std::int64_t points = 0;  ///< of each trade curve
  std::int64_t group = 1;   ///< stages; a part ends in its first stage's group or with a group
};

/// A part is the stages `first` to `last` with activation `first` given and alive: its input,
/// counted in its peak. For every part this holds the trade curve of all ways to get from there to
/// the end of the backward of stage `first`; see `way` for how they begin.
class search {
 public:
  search(chain const& stages, std::int64_t budget, search_size size, second_place place = {})
      : stages_(stages),
        count_(static_cast<std::int64_t>(stages.size())),
        budget_(budget),
        group_(size.group),
        place_(std::move(place)),
        layers_(place_.exists() ? 2 * place_.levels.size() : 1),
        select_(size.points) {
    std::size_t parts = 0;
    for (std::int64_t s = 0; s < count_; ++s) {
      offsets_.push_back(parts);
      parts += end_index(s, count_ - 1) + 1;
    }
    curves_.resize(parts * layers_);
    for (auto s = count_ - 1; s >= 0; --s) fill_from(s);
  }

  /// Whether something better may have been missed.
  bool thinned() const { return group_ > 1 || select_.thinned(); }

  /// Bytes and times of the best schedules, gradients not counted. The chain has a stage.
  curve const& whole() const { return curve_of(0, count_ - 1, top()); }

  /// The actions of the fastest schedule found with a peak of at most `bytes`, gradients not
  /// counted: at least that of the first point of whole().
  std::vector<action> actions(std::int64_t bytes) const {
    emitter out(stages_);
    expand(out, 0, count_ - 1, top(), bytes);
    return out.actions();
  }

 private:
  /// What distinguishes the curves of one part: the level of the second place that is left, and
  /// whether a copy of the input lies there.
  struct layer {
    std::ptrdiff_t level = 0;
    bool copy = false;
  };

  layer top() const {
    return {place_.exists() ? static_cast<std::ptrdiff_t>(place_.levels.size()) - 1 : 0, false};
  }
  stage const& at(std::int64_t i) const { return stages_[static_cast<std::size_t>(i)]; }
  std::int64_t bytes_of(std::int64_t activation) const {
    return activation == 0 ? 0 : at(activation - 1).output;
  }
  bool ends_chain(std::int64_t i) const { return i == count_ - 1; }
  std::int64_t group_end(std::int64_t s) const {
    return std::min(s - s % group_ + group_, count_) - 1;
  }

  std::size_t end_index(std::int64_t s, std::int64_t t) const {
    auto const own = group_end(s);
    return static_cast<std::size_t>(t <= own ? t - s : own - s + t / group_ - s / group_);
  }
  std::size_t index(std::int64_t s, std::int64_t t, layer l) const {
    auto const part = offsets_[static_cast<std::size_t>(s)] + end_index(s, t);
    return part * layers_ + static_cast<std::size_t>(2 * l.level + l.copy);
  }
  curve const& curve_of(std::int64_t s, std::int64_t t, layer l) const {
    return curves_[index(s, t, l)];
  }

  /// The next end of a part that begins with stage s.
  std::int64_t next_end(std::int64_t s, std::int64_t t) const {
    return t < group_end(s) ? t + 1 : std::min(t + group_, count_ - 1);
  }

  void fill_from(std::int64_t s) {
    measure_passes(s);
    for (auto t = s;; t = next_end(s, t)) {
      for (std::size_t l = 0; l < layers_; ++l)
        fill(s, t, {static_cast<std::ptrdiff_t>(l / 2), l % 2 == 1});
      if (t == count_ - 1) break;
    }
  }

  /// What the passes from activation s to every later one take: time, and bytes with activation s
  /// kept and dropped.
  void measure_passes(std::int64_t s) {
    passes_.assign(static_cast<std::size_t>(count_), {});
    auto const own = bytes_of(s);
    std::int64_t time = 0, first = 0, others = 0;
    for (auto i = s; i + 1 < count_; ++i) {
      auto const bytes = bytes_of(i) + bytes_of(i + 1) + at(i).scratch;
      time += at(i).forward;
      (i == s ? first : others) = i == s ? bytes : std::max(others, bytes);
      passes_[static_cast<std::size_t>(i + 1)] = {time, std::max(first, i == s ? 0 : own + others),
                                                  std::max(first, others)};
    }
  }

  void fill(std::int64_t s, std::int64_t t, layer l) {
    options_.clear();
    if (s == t) {
      add_run_one(s);
    } else {
      add_run_first(s, t, l);
      for (auto before = s; before < t; before = next_end(s, before))
        add_split(s, before + 1, t, l);
    }
    curves_[index(s, t, l)] = select_.best(options_, budget_);
  }

  void add(combination const& c) {
    if (!c.first.empty() && !c.then.empty() && c.least() <= budget_) options_.push_back(c);
  }

  void add_run_one(std::int64_t s) {
    auto const& stage = at(s);
    bool const output = ends_chain(s) || stage.reads_output;
    for (std::size_t i = 0; i < stage.variants.size(); ++i) {
      auto const& v = stage.variants[i];
      auto const forward = output ? stage.output + v.forward_scratch : v.forward_scratch;
      auto const backward =
          stage.reads_output ? stage.output + v.backward_scratch : v.backward_scratch;
      add({nothing,
           nothing,
           0,
           bytes_of(s) + v.saved + std::max(forward, backward),
           (output ? v.forward : v.replay) + v.backward,
           {way::run_one, static_cast<std::int32_t>(i)}});
    }
  }

  void add_run_first(std::int64_t s, std::int64_t t, layer l) {
    auto const& stage = at(s);
    for (std::size_t i = 0; i < stage.variants.size(); ++i) {
      auto const& v = stage.variants[i];
      auto const held = bytes_of(s) + v.saved;
      auto const backward =
          stage.reads_output ? stage.output + v.backward_scratch : v.backward_scratch;
      add({curve_of(s + 1, t, {l.level, false}),
           nothing,
           held,
           held + std::max(stage.output + v.forward_scratch, backward),
           v.forward + v.backward,
           {way::run_first, static_cast<std::int32_t>(i)}});
    }
  }

  void add_split(std::int64_t s, std::int64_t m, std::int64_t t, layer l) {
    auto const& passes = passes_[static_cast<std::size_t>(m)];
    auto const own = bytes_of(s);
    auto const middle = static_cast<std::int32_t>(m);
    add({curve_of(m, t, {l.level, false}),
         curve_of(s, m - 1, l),
         own,
         passes.bytes_kept,
         passes.time,
         {way::split, middle}});
    if (!place_.exists() || s == 0) return;
    auto const transfer = transfer_time(own, place_.bandwidth);
    if (l.copy) {
      add({curve_of(m, t, {l.level, false}),
           curve_of(s, m - 1, l),
           0,
           passes.bytes_dropped,
           passes.time + transfer,
           {way::split_again, middle}});
      return;
    }
    auto const left = place_.without(l.level, own);
    if (left < 0) return;
    for (bool const kept : {false, true})
      add({curve_of(m, t, {left, false}),
           curve_of(s, m - 1, kept ? layer{left, true} : l),
           0,
           passes.bytes_dropped,
           passes.time + 2 * transfer,
           {kept ? way::split_away_kept : way::split_away, middle}});
  }

  /// Writes the actions of the best way within `bytes`.
  void expand(emitter& out, std::int64_t s, std::int64_t t, layer l, std::int64_t bytes) const {
    auto const& found = *best_within(curve_of(s, t, l), bytes);
    auto const index = std::int64_t{found.what.index};
    auto const own = bytes_of(s);
    switch (found.what.how) {
      case way::run_one:
        out.run(s, found.what.index, true);
        out.backward(s, true);
        return;
      case way::run_first: {
        auto const saved = at(s).variants[static_cast<std::size_t>(index)].saved;
        out.run(s, found.what.index, false);
        expand(out, s + 1, t, {l.level, false}, found.peak - own - saved);
        out.backward(s, false);
        return;
      }
      case way::split:
        out.pass(s, index);
        expand(out, index, t, {l.level, false}, found.peak - own);
        out.put(act::drop, index);
        return expand(out, s, index - 1, l, found.peak);
      case way::split_again:
        return expand_away(out, s, index, t, l.level, l, found.peak);
      case way::split_away:
      case way::split_away_kept: {
        bool const kept = found.what.how == way::split_away_kept;
        auto const left = place_.without(l.level, own);
        out.put(act::store, s);
        expand_away(out, s, index, t, left, kept ? layer{left, true} : l, found.peak, !kept);
        if (kept) out.put(act::discard, s);
        return;
      }
    }
  }

  /// A split whose input, stored already, is only in the second place meanwhile.
  void expand_away(emitter& out, std::int64_t s, std::int64_t m, std::int64_t t,
                   std::ptrdiff_t left, layer rest, std::int64_t peak,
                   bool discards = false) const {
    out.pass(s, m, false);
    expand(out, m, t, {left, false}, peak);
    out.put(act::drop, m);
    out.put(act::load, s);
    if (discards) out.put(act::discard, s);
    expand(out, s, m - 1, rest, peak);
  }

  struct passed {
    std::int64_t time = 0, bytes_kept = 0, bytes_dropped = 0;
  };
  static inline curve const nothing{point{}};

  chain const& stages_;
  std::int64_t count_, budget_, group_;
  second_place place_;
  std::size_t layers_;
  selection select_;
  std::vector<std::size_t> offsets_;
  std::vector<curve> curves_;
  std::vector<passed> passes_;
  std::vector<combination> options_;
};

}  // namespace memfit::checkpoint::detail
