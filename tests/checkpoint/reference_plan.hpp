// Schedules by brute force: a simulation of single actions, and every persistent schedule of a
// chain. Used by the tests of the planners; shares no code with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"

namespace test {

namespace plan = memfit::checkpoint;

/// Carries out actions; `valid` turns false at the first that cannot be.
struct simulation {
  plan::chain const* stages;
  std::int64_t bandwidth = 1;
  std::vector<bool> here, there;  // activations, and their copies in the second place
  std::vector<int> run;           // the variant that each stage was run in, or -1
  std::int64_t backward_next;
  bool turned = false, valid = true;
  std::int64_t live = 0, peak = 0, second = 0, second_peak = 0, time = 0, forwards = 0;

  explicit simulation(plan::chain const& c, std::int64_t bytes_per_time = 1)
      : stages(&c),
        bandwidth(bytes_per_time),
        here(c.size() + 1),
        there(c.size() + 1),
        run(c.size(), -1),
        backward_next(static_cast<std::int64_t>(c.size()) - 1) {
    here[0] = true;
    for (std::size_t i = 0; i < c.size(); ++i)
      live = std::max(live, c[i].gradient + (i == 0 ? 0 : c[i - 1].gradient));
    peak = live;
  }

  void apply(plan::action const& a) {
    using plan::act;
    auto const n = static_cast<std::int64_t>(stages->size());
    bool const of_stage = a.what == act::pass || a.what == act::run || a.what == act::backward;
    if (a.what != act::turn &&
        (of_stage ? a.index < 0 || a.index >= n : a.index < 1 || a.index > n))
      valid = false;
    if (!valid) return;
    auto const i = static_cast<std::size_t>(a.what == act::turn ? 0 : a.index);
    switch (a.what) {
      case act::pass:
        return need(here[i]), make(i + 1), use((*stages)[i].scratch),
               take((*stages)[i].forward, true);
      case act::run: {
        if (a.variant < 0 || a.variant >= static_cast<int>((*stages)[i].variants.size()))
          return need(false);
        auto const& v = (*stages)[i].variants[static_cast<std::size_t>(a.variant)];
        need(here[i] && run[i] < 0);
        if (a.output) make(i + 1);
        run[i] = a.variant;
        live += v.saved;
        return use(v.forward_scratch), take(a.output ? v.forward : v.replay, true);
      }
      case act::turn:
        need(!turned && here.back() && run.back() >= 0);
        turned = true;
        return;
      case act::backward: {
        need(turned && a.index == backward_next && run[i] >= 0 && here[i] &&
             (here[i + 1] || !(*stages)[i].reads_output));
        if (!valid) return;
        auto const& v = (*stages)[i].variants[static_cast<std::size_t>(run[i])];
        use(v.backward_scratch);
        take(v.backward, false);
        live -= v.saved;
        run[i] = -1;
        --backward_next;
        return;
      }
      case act::drop:
        need(here[i]);
        here[i] = false;
        live -= (*stages)[i - 1].output;
        return;
      case act::store:
        need(here[i] && !there[i]);
        there[i] = true;
        second += (*stages)[i - 1].output;
        second_peak = std::max(second_peak, second);
        return take(transfer(i), false);
      case act::load:
        need(there[i]);
        return make(i), use(0), take(transfer(i), false);
      case act::discard:
        need(there[i]);
        there[i] = false;
        second -= (*stages)[i - 1].output;
        return;
    }
    valid = false;
  }

  /// Whether all is done and nothing is left.
  bool finished() const {
    return valid && turned && backward_next < 0 &&
           std::none_of(here.begin() + 1, here.end(), [](bool b) { return b; }) &&
           std::none_of(there.begin(), there.end(), [](bool b) { return b; });
  }

 private:
  void need(bool holds) { valid = valid && holds; }
  void make(std::size_t activation) {
    need(!here[activation]);
    here[activation] = true;
    live += (*stages)[activation - 1].output;
  }
  void use(std::int64_t scratch) { peak = std::max(peak, live + scratch); }
  void take(std::int64_t t, bool forward) {
    time += t;
    forwards += forward;
  }
  std::int64_t transfer(std::size_t i) const {
    auto const bytes = (*stages)[i - 1].output;
    return bytes / bandwidth + (bytes % bandwidth == 0 ? 0 : 1);
  }
};

/// Walks through every persistent schedule of a chain, action by action, and collects for each peak
/// the least time. With a second place, activations kept over a split may be there, too.
class every_schedule {
 public:
  explicit every_schedule(plan::chain const& c) : chain_(c), second_bytes_(-1) {
    search(simulation(c));
  }
  every_schedule(plan::chain const& c, std::int64_t second_bytes, std::int64_t bandwidth)
      : chain_(c), second_bytes_(second_bytes) {
    search(simulation(c, bandwidth));
  }

  /// Peaks and times that no other schedule beats, by rising peak.
  std::vector<std::pair<std::int64_t, std::int64_t>> best() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for (auto const& [peak, time] : least_time_)
      if (found.empty() || time < found.back().second) found.emplace_back(peak, time);
    return found;
  }
  std::int64_t schedules() const { return schedules_; }

 private:
  using next = std::function<void(simulation)>;

  void search(simulation const& start) {
    part(0, static_cast<std::int64_t>(chain_.size()) - 1, start, [&](simulation const& end) {
      ++schedules_;
      if (!end.finished())
        throw std::logic_error("the reference made a schedule that is not valid");
      auto const [at, fresh] = least_time_.try_emplace(end.peak, end.time);
      if (!fresh) at->second = std::min(at->second, end.time);
    });
  }

  plan::stage const& at(std::int64_t i) const { return chain_[static_cast<std::size_t>(i)]; }
  bool is_last(std::int64_t i) const { return i + 1 == static_cast<std::int64_t>(chain_.size()); }

  void part(std::int64_t s, std::int64_t t, simulation const& now, next const& then) const {
    for (int v = 0; v < static_cast<int>(at(s).variants.size()); ++v) run_first(s, t, v, now, then);
    for (auto m = s + 1; m <= t; ++m) split(s, m, t, now, then);
  }

  void run_first(std::int64_t s, std::int64_t t, int variant, simulation now,
                 next const& then) const {
    bool const output = s < t || is_last(s) || at(s).reads_output;
    now.apply({plan::act::run, s, variant, output});
    if (is_last(s)) now.apply({plan::act::turn});
    auto const go_back = [&](simulation x) {
      if (output && !at(s).reads_output) x.apply({plan::act::drop, s + 1});
      x.apply({plan::act::backward, s});
      if (output && at(s).reads_output) x.apply({plan::act::drop, s + 1});
      then(std::move(x));
    };
    if (s == t)
      go_back(now);
    else
      part(s + 1, t, now, [&](simulation x) {
        if (!x.here[static_cast<std::size_t>(s + 1)]) throw std::logic_error("an output is gone");
        go_back(std::move(x));
      });
  }

  void split(std::int64_t s, std::int64_t m, std::int64_t t, simulation const& now,
             next const& then) const {
    keep(s, m, t, now, then);
    if (second_bytes_ >= 0 && s > 0) store(s, m, t, now, then);
  }

  void keep(std::int64_t s, std::int64_t m, std::int64_t t, simulation now,
            next const& then) const {
    for (auto i = s; i < m; ++i) {
      now.apply({plan::act::pass, i});
      if (i > s) now.apply({plan::act::drop, i});
    }
    part(m, t, now, [&](simulation x) {
      x.apply({plan::act::drop, m});
      part(s, m - 1, x, then);
    });
  }

  // Whoever stored the copy discards it: when it is loaded, or when its part is done, after it has
  // served other splits of that part.
  void store(std::int64_t s, std::int64_t m, std::int64_t t, simulation now,
             next const& then) const {
    bool const mine = !now.there[static_cast<std::size_t>(s)];
    now.apply({plan::act::pass, s});
    if (mine) now.apply({plan::act::store, s});
    if (now.second_peak > second_bytes_) return;
    now.apply({plan::act::drop, s});
    for (auto i = s + 1; i < m; ++i) {
      now.apply({plan::act::pass, i});
      now.apply({plan::act::drop, i});
    }
    part(m, t, now, [&](simulation x) {
      x.apply({plan::act::drop, m});
      x.apply({plan::act::load, s});
      if (!mine) return part(s, m - 1, x, then);
      auto const discarded = [&](simulation y, next const& go_on) {
        y.apply({plan::act::discard, s});
        go_on(y);
      };
      discarded(x, [&](simulation const& y) { part(s, m - 1, y, then); });
      part(s, m - 1, x, [&](simulation const& y) { discarded(y, then); });
    });
  }

  plan::chain const& chain_;
  std::int64_t second_bytes_;
  std::map<std::int64_t, std::int64_t> least_time_;
  std::int64_t schedules_ = 0;
};

struct random_chains {
  std::mt19937_64 random;

  std::int64_t draw(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>{least, most}(random);
  }

  /// Stages that have nothing in common, and now and then nothing at all; up to three variants.
  plan::chain operator()(std::int64_t count, std::int64_t most_variants) {
    bool const small = draw(0, 2) == 0;  // many ties
    auto const bytes = [&] { return draw(0, 9) == 0 ? 0 : small ? draw(1, 6) : draw(1, 1 << 30); };
    auto const time = [&] { return small ? draw(0, 4) : draw(0, 100'000); };
    plan::chain stages;
    for (std::int64_t i = 0; i < count; ++i) {
      plan::stage s{.output = bytes(),
                    .gradient = draw(0, 1) == 0 ? 0 : bytes(),
                    .forward = time(),
                    .scratch = bytes(),
                    .reads_output = draw(0, 3) == 0,
                    .variants = {}};
      for (auto v = draw(1, most_variants); v > 0; --v)
        s.variants.push_back({bytes(), time(), time(), time(), bytes(), bytes()});
      stages.push_back(s);
    }
    return stages;
  }
};

}  // namespace test
