// What a planner asks of its arguments; each check throws before anything is planned.
// Used by the planners and the checker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/core/error.hpp"

namespace memfit::checkpoint::detail {

[[noreturn]] inline void refuse(std::string_view call, std::string const& why) {
  throw argument_error("memfit::checkpoint::" + std::string(call) + ": " + why);
}

inline void require_at_least(std::string_view call, std::string_view name, std::int64_t value,
                             std::int64_t least) {
  if (value < least)
    refuse(call, std::string(name) + " is " + std::to_string(value) + ", must be at least " +
                     std::to_string(least));
}

/// Sums numbers of one stage that must not be negative, and refuses a total of more than 64 bits.
class careful_sum {
 public:
  careful_sum(std::string_view call, std::string_view what) : call_(call), what_(what) {}

  void add(std::size_t stage, std::string_view name, std::int64_t value) {
    if (value < 0)
      refuse(call_, "stage " + std::to_string(stage) + ": " + std::string(name) + " is " +
                        std::to_string(value) + ", must be at least 0");
    if (value > most - total_)
      refuse(call_, "stage " + std::to_string(stage) + ": with its " + std::string(name) + " of " +
                        std::to_string(value) + " the " + std::string(what_) +
                        " of the chain are more than 64 bits hold");
    total_ += value;
  }

  std::int64_t total() const { return total_; }

  /// Every stage may have to run once for each stage of the chain.
  void require_repeats(std::size_t stages) const {
    if (total_ > most / 4 / static_cast<std::int64_t>(stages + 1))
      refuse(call_, std::string(what_) + " of " + std::to_string(total_) + " in a chain of " +
                        std::to_string(stages) +
                        " stages can add up to more than 64 bits hold when stages run again");
  }

 private:
  static constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::string_view call_, what_;
  std::int64_t total_ = 0;
};

/// Nothing negative, at least one variant a stage, and no sum of bytes or times that a schedule
/// of any planner can reach overflows.
inline void require_chain(std::string_view call, chain const& stages) {
  careful_sum bytes(call, "bytes"), times(call, "times");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    auto const& s = stages[i];
    if (s.variants.empty()) refuse(call, "stage " + std::to_string(i) + " has no variants");
    bytes.add(i, "output", s.output);
    bytes.add(i, "gradient", s.gradient);
    bytes.add(i, "scratch", s.scratch);
    times.add(i, "forward", s.forward);
    for (auto const& v : s.variants) {
      bytes.add(i, "saved", v.saved);
      bytes.add(i, "forward_scratch", v.forward_scratch);
      bytes.add(i, "backward_scratch", v.backward_scratch);
      times.add(i, "forward of a variant", v.forward);
      times.add(i, "replay", v.replay);
      times.add(i, "backward", v.backward);
    }
  }
  times.require_repeats(stages.size());
}

}  // namespace memfit::checkpoint::detail
