// The least bytes that a chain can be processed with, and a schedule that takes no more.
// Used by within() for budgets near the impossible, and to name the least one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/emit.hpp"
#include "memfit/checkpoint/plan/part.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"

namespace memfit::checkpoint::detail {

/// The least peak of every part of a chain of at least one stage; n^3 / 6 steps.
class least_peaks {
 public:
  explicit least_peaks(chain const& stages)
      : parts_(stages), count_(parts_.count()), rows_(stages.size()) {
    for (auto s = count_ - 1; s >= 0; --s) fill(s);
  }

  /// Gradients not counted.
  std::int64_t whole() const { return peak(0, count_ - 1); }

  std::vector<action> actions() const {
    emitter out(parts_.stages());
    expand(out, 0, count_ - 1);
    return out.actions();
  }

 private:
  /// Of the stages s to t; row s holds t = s, s + 1 ...
  std::int64_t peak(std::int64_t s, std::int64_t t) const {
    return rows_[static_cast<std::size_t>(s)][static_cast<std::size_t>(t - s)];
  }

  void fill(std::int64_t s) {
    auto& row = rows_[static_cast<std::size_t>(s)];
    row.assign(static_cast<std::size_t>(count_ - s), INT64_MAX);
    auto const& variants = parts_.at(s).variants;
    for (auto const& v : variants) row[0] = (std::min)(row[0], parts_.run_one_bytes(s, v));
    for (auto t = s + 1; t < count_; ++t)
      for (auto const& v : variants)
        row[static_cast<std::size_t>(t - s)] =
            (std::min)(row[static_cast<std::size_t>(t - s)], run_first_peak(s, t, v));
    auto const own = parts_.bytes_of(s);
    auto const passes = parts_.passes_from(s);
    for (auto m = s + 1; m < count_; ++m) {
      auto const floor =
          (std::max)(passes[static_cast<std::size_t>(m - s)].bytes_kept, peak(s, m - 1));
      auto const& after = rows_[static_cast<std::size_t>(m)];
      auto* const to = row.data() + (m - s);
      for (std::size_t i = 0; i < after.size(); ++i)
        to[i] = (std::min)(to[i], (std::max)(floor, own + after[i]));
    }
  }

  std::int64_t run_first_peak(std::int64_t s, std::int64_t t, variant const& v) const {
    return (std::max)(parts_.run_first_bytes(s, v), parts_.bytes_of(s) + v.saved + peak(s + 1, t));
  }

  void expand(emitter& out, std::int64_t s, std::int64_t t) const {
    auto const bytes = peak(s, t);
    auto const& variants = parts_.at(s).variants;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      auto const taken =
          s == t ? parts_.run_one_bytes(s, variants[i]) : run_first_peak(s, t, variants[i]);
      if (taken > bytes) continue;
      out.run(s, static_cast<int>(i), s == t);
      if (s < t) expand(out, s + 1, t);
      return out.backward(s, s == t);
    }
    auto const passes = parts_.passes_from(s);
    auto m = s + 1;
    while ((std::max)({passes[static_cast<std::size_t>(m - s)].bytes_kept, peak(s, m - 1),
                       parts_.bytes_of(s) + peak(m, t)}) > bytes)
      ++m;
    out.pass(s, m);
    expand(out, m, t);
    out.put(act::drop, m);
    expand(out, s, m - 1);
  }

  chain_parts parts_;
  std::int64_t count_;
  std::vector<std::vector<std::int64_t>> rows_;
};

}  // namespace memfit::checkpoint::detail
