// The fastest schedule under a budget of bytes, for stages of any bytes and times.
// Used by whoever trains in the memory that there is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/check.hpp"
#include "memfit/checkpoint/plan/least.hpp"
#include "memfit/checkpoint/plan/refuse.hpp"
#include "memfit/checkpoint/plan/revolve.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"
#include "memfit/checkpoint/plan/search.hpp"
#include "memfit/checkpoint/plan/simple.hpp"

namespace memfit::checkpoint {

namespace detail {

inline constexpr auto any_bytes = INT64_MAX;

/// As large a search as is done in a moment: everything for short chains, then fewer points, then
/// fewer ends of parts.
inline search_size affordable(std::int64_t stages, std::int64_t layers) {
  constexpr std::int64_t many = 1 << 14, usual = 500, few = 16, work = 400'000'000;
  if (stages <= 16) return {many, 1};
  auto const merges = [&](std::int64_t group) {
    auto const groups = (stages + group - 1) / group;
    return stages * groups * (groups + 2 * group) / 4 * layers;
  };
  std::int64_t group = 1;
  while (merges(group) > work / usual && group * group < stages) ++group;
  return {std::clamp(work / merges(group), few, usual), group};
}

/// The levels of a second place: all amounts that can be left, where those are few.
inline second_place levels_of(chain const& stages, std::int64_t bytes, std::int64_t bandwidth) {
  constexpr std::size_t most = 300;
  constexpr std::int64_t steps = 16;
  std::int64_t all = 0;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) all += stages[i].output;
  if (all <= bytes) return {bandwidth, {bytes}, true};
  std::vector<std::int64_t> left{bytes};
  for (std::size_t i = 0; i + 1 < stages.size() && left.size() <= most; ++i) {
    auto const before = left.size();
    for (std::size_t j = 0; j < before; ++j)
      if (left[j] >= stages[i].output) left.push_back(left[j] - stages[i].output);
    std::sort(left.begin(), left.end());
    left.erase(std::unique(left.begin(), left.end()), left.end());
  }
  if (stages.size() > 16 || left.size() > most) {
    left.clear();
    for (std::int64_t i = 0; i < steps; ++i) left.push_back(bytes / steps * i);
    left.push_back(bytes);
    left.erase(std::unique(left.begin(), left.end()), left.end());
  }
  return {bandwidth, std::move(left), false};
}

inline std::int64_t layers_of(second_place const& place) {
  return place.exists() ? 2 * static_cast<std::int64_t>(place.levels.size()) : 1;
}

[[noreturn]] inline void refuse_budget(std::int64_t bytes, chain const& stages,
                                       std::int64_t least) {
  refuse("within", std::to_string(bytes) + " bytes are too few for this chain of " +
                       std::to_string(stages.size()) + " stages; the least that works is " +
                       std::to_string(least + gradient_bytes(stages)));
}

/// Keeps the fastest of the schedules that fit.
class fastest {
 public:
  fastest(chain const& stages, std::int64_t bytes) : stages_(stages), bytes_(bytes) {}

  void offer(schedule s) {
    if (s.peak > bytes_) return;
    if (!best_ || s.time < best_->time || (s.time == best_->time && s.peak < best_->peak))
      best_ = std::move(s);
  }

  /// Every every(), and every revolve() of at most two million passes.
  void offer_simple() {
    auto const n = count_of(stages_);
    for (std::int64_t k = 1; k <= n; ++k)
      offer(checked(stages_, segmented(stages_, multiples(k, n))));
    for (auto slots = n; slots > 0 && binomial_passes(n, slots) <= 2'000'000; --slots)
      offer(checked(stages_, binomial(stages_, slots)));
  }

  std::optional<schedule>& best() { return best_; }

 private:
  chain const& stages_;
  std::int64_t bytes_;
  std::optional<schedule> best_;
};

inline search search_of(chain const& stages, std::int64_t budget, second_place const& place) {
  return search(stages, budget, affordable(count_of(stages), layers_of(place)), place);
}

/// The fastest that a search finds, and in long chains, of whose schedules it leaves out some, the
/// simple ones. Empty where nothing fits.
inline std::optional<schedule> fastest_within(chain const& stages, std::int64_t bytes,
                                              second_place const& place = {}) {
  auto const left = bytes - gradient_bytes(stages);
  auto const all = search_of(stages, left, place);
  fastest found(stages, bytes);
  if (!all.whole().empty()) found.offer(checked(stages, all.actions(left), place.bandwidth));
  if (all.thinned()) found.offer_simple();
  return found.best();
}

/// The least peak with a second place, and a schedule that takes no more: exact as within() is.
inline schedule least_with(chain const& stages, second_place const& place) {
  auto const layers = layers_of(place);
  auto const group = layers <= 2 ? 1 : affordable(count_of(stages), layers).group;
  search const least(stages, any_bytes, {2, group}, place);
  return checked(stages, least.actions(least.whole().front().peak), place.bandwidth);
}

inline void require_transfers(std::string_view call, chain const& stages, std::int64_t bandwidth) {
  careful_sum transfers(call, "transfer times");
  for (std::size_t i = 0; i < stages.size(); ++i)
    transfers.add(i, "transfer", transfer_time(stages[i].output, bandwidth));
  transfers.require_repeats(stages.size());
}

}  // namespace detail

/// The least budget that within() accepts, to the byte: the least peak of all persistent schedules.
/// For 1,000 stages it takes a third of a second.
inline std::int64_t least_bytes(chain const& stages) {
  detail::require_chain("least_bytes", stages);
  if (stages.empty()) return 0;
  return detail::least_peaks(stages).whole() + gradient_bytes(stages);
}

/// The fastest schedule with a peak of at most `bytes`, of all that are persistent: what is kept
/// stays until its backward is done (Beaumont et al. 2019, arXiv 1911.13214). It picks the variant
/// of every stage, too. Exact for up to 16 stages; beyond, trade curves are thinned to 500 points
/// and in chains of more than about 100 stages parts end with a group only; then the schedule is
/// valid and its peak true, no schedule of every(), sqrt_n() or a revolve() of up to two million
/// passes that fits is faster, and a faster one may exist.
/// Throws memfit::argument_error for a budget below least_bytes(), which it names.
inline schedule within(chain const& stages, std::int64_t bytes) {
  detail::require_chain("within", stages);
  detail::require_at_least("within", "bytes", bytes, 0);
  if (stages.empty()) return keep_all(stages);
  if (auto found = detail::fastest_within(stages, bytes)) return *std::move(found);
  detail::least_peaks const least(stages);
  auto const most = bytes - gradient_bytes(stages);
  if (least.whole() > most) detail::refuse_budget(bytes, stages, least.whole());
  return checked(stages, least.actions());
}

/// The same with a second, slower place for kept activations, of `second_bytes` and reached at
/// `bandwidth` bytes per unit of time (at least 1), both ways, while nothing else is done. Never
/// slower than without it. Exact for up to 16 stages, unless kept activations can fill the place in
/// more than 300 ways; beyond, what is left of the place is told apart in 16 steps, unless all
/// activations fit there. The limit is hard in every case.
inline schedule within(chain const& stages, std::int64_t bytes, std::int64_t second_bytes,
                       std::int64_t bandwidth) {
  detail::require_chain("within", stages);
  detail::require_at_least("within", "bytes", bytes, 0);
  detail::require_at_least("within", "second_bytes", second_bytes, 0);
  detail::require_at_least("within", "bandwidth", bandwidth, 1);
  detail::require_transfers("within", stages, bandwidth);
  if (stages.empty()) return keep_all(stages);
  auto const place = detail::levels_of(stages, second_bytes, bandwidth);
  auto const found = detail::fastest_within(stages, bytes, place);
  auto const alone = detail::fastest_within(stages, bytes);
  if (alone && (!found || alone->time <= found->time)) return *alone;
  if (found) return *found;
  detail::least_peaks const alone_least(stages);
  auto const gradients = gradient_bytes(stages);
  if (alone_least.whole() <= bytes - gradients) return checked(stages, alone_least.actions());
  auto least = detail::least_with(stages, place);
  if (least.peak <= bytes) return least;
  detail::refuse_budget(bytes, stages, (std::min)(alone_least.whole(), least.peak - gradients));
}

/// At most `most` schedules (at least 1) with rising peak and falling time, from the least bytes
/// to the least time: the trade of one chain, as exact as within().
inline std::vector<schedule> trade(chain const& stages, std::int64_t most) {
  detail::require_chain("trade", stages);
  detail::require_at_least("trade", "most", most, 1);
  if (stages.empty()) return {keep_all(stages)};
  detail::search const all(stages, detail::any_bytes,
                           detail::affordable(detail::count_of(stages), 1));
  auto const first = all.whole().front().peak, last = all.whole().back().peak;
  std::vector<schedule> found;
  for (std::int64_t i = 0; i < most; ++i) {
    auto const share = most == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(most - 1);
    auto const bytes =
        i == most - 1
            ? last
            : first + static_cast<std::int64_t>(share * static_cast<double>(last - first));
    auto next = checked(stages, all.actions(bytes));
    if (found.empty() || next.time < found.back().time) found.push_back(std::move(next));
  }
  return found;
}

}  // namespace memfit::checkpoint
