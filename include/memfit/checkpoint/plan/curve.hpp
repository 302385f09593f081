// Trade curves: the ways to process a part of a chain that no other way beats in bytes and time.
// Used by the search behind within().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace memfit::checkpoint::detail {

/// What a part of a chain begins with. `index` is a stage, `middle` of a split, or a variant.
enum class way : std::uint8_t {
  run_one,          ///< the part is one stage: run it in variant `index`
  run_first,        ///< run the first stage in variant `index`, its output stays
  split,            ///< pass to stage `index`, process from there on, then what lies before
  split_away,       ///< the same with the input in the second place meanwhile, its copy discarded
  split_away_kept,  ///< the same, but the copy stays while the rest is processed
  split_again       ///< the same with a copy that is there already and stays
};

struct choice {
  way how = way::run_one;
  std::int32_t index = 0;
};

struct point {
  std::int64_t peak = 0;
  std::int64_t time = 0;
  choice what;
};

/// Points with rising peak and falling time.
using curve = std::vector<point>;

/// The last point with a peak of at most `bytes`; null where there is none.
inline point const* best_within(curve const& c, std::int64_t bytes) {
  auto const after = std::upper_bound(c.begin(), c.end(), bytes,
                                      [](std::int64_t b, point const& p) { return b < p.peak; });
  return after == c.begin() ? nullptr : &after[-1];
}

/// One choice, whose curve is the combination of two others: `first` happens while `held` bytes are
/// held, `then` with nothing of this part held but what it counts itself.
struct combination {
  std::span<point const> first, then;
  std::int64_t held = 0;   ///< on top of `first`
  std::int64_t floor = 0;  ///< bytes that the choice takes by itself
  std::int64_t time = 0;   ///< on top of both
  choice what;

  std::int64_t least() const {
    return std::max({floor, held + first.front().peak, then.front().peak});
  }
  std::int64_t most() const {
    return std::max({floor, held + first.back().peak, then.back().peak});
  }
  std::int64_t fastest() const { return time + first.back().time + then.back().time; }

  /// Hands every point up to `budget` to `put(peak, time)`, in the order of rising peaks.
  template <class Put>
  void walk(std::int64_t budget, Put&& put) const {
    constexpr auto never = std::numeric_limits<std::int64_t>::max();
    auto const* a = first.data();
    auto const* b = then.data();
    auto const* const a_last = a + first.size() - 1;
    auto const* const b_last = b + then.size() - 1;
    for (auto peak = least(); peak <= budget;) {
      while (a != a_last && held + a[1].peak <= peak) ++a;
      while (b != b_last && b[1].peak <= peak) ++b;
      put(peak, time + a->time + b->time);
      auto const next_a = a != a_last ? held + a[1].peak : never;
      auto const next_b = b != b_last ? b[1].peak : never;
      if (a == a_last && b == b_last) break;
      peak = std::min(next_a, next_b);
    }
  }
};

/// Leaves of points sorted by peak and time those that no other beats.
inline void leave_best(curve& all) {
  std::size_t kept = 0;
  for (auto const& p : all)
    if (kept == 0 || p.time < all[kept - 1].time) all[kept++] = p;
  all.resize(kept);
}

/// Finds the best of many combinations. At most `most` points come out: all that are best where
/// they are so few, else the one with the least peak and the fastest of each of `most - 1` equal
/// ranges of peaks. Every point is exact; only what lies between may be missing.
class selection {
 public:
  explicit selection(std::int64_t most) : most_(std::max<std::int64_t>(most, 1)) {}

  bool thinned() const { return thinned_; }

  curve best(std::span<combination const> all, std::int64_t budget) {
    auto least = std::numeric_limits<std::int64_t>::max(), last = std::int64_t{0};
    std::size_t points = 0;
    for (auto const& c : all) {
      least = std::min(least, c.least());
      last = std::max(last, c.most());
      points += c.first.size() + c.then.size();
    }
    last = std::min(last, budget);
    if (least > last) return {};
    if (most_ == 1) return only_least(all, least);
    if (points <= static_cast<std::size_t>(2 * most_)) {
      auto found = each(all, budget);
      if (found.size() <= static_cast<std::size_t>(most_)) return found;
    }
    return fastest_of_ranges(all, least, last);
  }

 private:
  curve only_least(std::span<combination const> all, std::int64_t least) {
    thinned_ = true;
    point found{least, std::numeric_limits<std::int64_t>::max(), {}};
    for (auto const& c : all)
      c.walk(least, [&](std::int64_t, std::int64_t time) {
        if (time < found.time) found = {least, time, c.what};
      });
    return {found};
  }

  curve each(std::span<combination const> all, std::int64_t budget) {
    gathered_.clear();
    for (auto const& c : all)
      c.walk(budget, [&](std::int64_t peak, std::int64_t time) {
        gathered_.push_back({peak, time, c.what});
      });
    std::sort(gathered_.begin(), gathered_.end(), [](point const& a, point const& b) {
      return a.peak != b.peak ? a.peak < b.peak : a.time < b.time;
    });
    leave_best(gathered_);
    return gathered_;
  }

  curve fastest_of_ranges(std::span<combination const> all, std::int64_t least, std::int64_t last) {
    thinned_ = true;
    auto const none = point{0, std::numeric_limits<std::int64_t>::max(), {}};
    gathered_.assign(static_cast<std::size_t>(most_), none);
    double const scale = static_cast<double>(most_ - 2) / static_cast<double>(last - least + 1);
    auto const range = [&](std::int64_t peak) {
      if (peak == least) return std::size_t{0};
      return 1 + static_cast<std::size_t>(static_cast<double>(peak - least) * scale);
    };
    for (auto const& c : all) {
      auto const start = c.least();
      if (start > last || beaten(range(start), c.fastest(), start)) continue;
      c.walk(last, [&](std::int64_t peak, std::int64_t time) {
        auto& cell = gathered_[range(peak)];
        if (time < cell.time || (time == cell.time && peak < cell.peak))
          cell = {peak, time, c.what};
      });
    }
    std::erase_if(gathered_, [&](point const& p) { return p.time == none.time; });
    leave_best(gathered_);
    return gathered_;
  }

  /// Whether a range up to `at` holds a point that is no worse; looks at the nearest one only.
  bool beaten(std::size_t at, std::int64_t time, std::int64_t peak) const {
    for (auto i = at + 1; i-- > 0;)
      if (gathered_[i].time != std::numeric_limits<std::int64_t>::max() &&
          gathered_[i].peak <= peak)
        return gathered_[i].time <= time;
    return false;
  }

  std::int64_t most_;
  bool thinned_ = false;
  curve gathered_;
};

}  // namespace memfit::checkpoint::detail
