// Writes the pieces that schedules consist of, so that every planner drops what it can at once.
// Used by the planners.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"

namespace memfit::checkpoint::detail {

class emitter {
 public:
  explicit emitter(chain const& stages) : stages_(stages) {}

  void put(act what, std::int64_t index) { actions_.push_back({what, index}); }

  /// From activation `from` to activation `to`, with nothing kept between, and `from` only where
  /// it stays.
  void pass(std::int64_t from, std::int64_t to, bool stays = true) {
    for (auto i = from; i < to; ++i) {
      put(act::pass, i);
      if (i > from || !stays) put(act::drop, i);
    }
  }

  /// The forward that saves. The last one of a segment makes its output only where somebody reads
  /// it; that of the chain ends with the turn.
  void run(std::int64_t i, int variant, bool ends_segment) {
    actions_.push_back({act::run, i, variant, output_of_run(i, ends_segment)});
    if (is_last(i)) put(act::turn, 0);
  }

  /// The backward of what run() ran, and the end of its output.
  void backward(std::int64_t i, bool ends_segment) {
    bool const output = output_of_run(i, ends_segment);
    if (output && !reads_output(i)) put(act::drop, i + 1);
    put(act::backward, i);
    if (output && reads_output(i)) put(act::drop, i + 1);
  }

  /// Runs the stages from `first` to `last` with everything saved, then all their backwards.
  void segment(std::int64_t first, std::int64_t last) {
    for (auto i = first; i <= last; ++i) run(i, 0, i == last);
    for (auto i = last; i >= first; --i) backward(i, i == last);
  }

  std::vector<action> const& actions() const { return actions_; }

 private:
  bool is_last(std::int64_t i) const { return i + 1 == static_cast<std::int64_t>(stages_.size()); }
  bool reads_output(std::int64_t i) const {
    return stages_[static_cast<std::size_t>(i)].reads_output;
  }
  bool output_of_run(std::int64_t i, bool ends_segment) const {
    return !ends_segment || is_last(i) || reads_output(i);
  }

  chain const& stages_;
  std::vector<action> actions_;
};

}  // namespace memfit::checkpoint::detail
