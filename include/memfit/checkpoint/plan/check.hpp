// Replays a list of actions on a chain, proves that it can be run, and says what it takes.
// Used by every planner for the figures of its schedule, and by users who write their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/refuse.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"

namespace memfit::checkpoint {

/// Bytes that hold any two neighbouring gradients, reserved during the whole schedule: one is read
/// while the other is written. The gradient of activation 0 is the user's.
/// The chain must have been found right by a planner or by check().
inline std::int64_t gradient_bytes(chain const& stages) {
  std::int64_t most = 0, before = 0;
  for (auto const& s : stages)
    most = std::max(most, std::exchange(before, s.gradient) + s.gradient);
  return most;
}

/// "run of stage 3", "drop of activation 7".
inline std::string describe(action const& a) {
  switch (a.what) {
    case act::pass:
      return "pass of stage " + std::to_string(a.index);
    case act::run:
      return "run of stage " + std::to_string(a.index);
    case act::turn:
      return "turn";
    case act::backward:
      return "backward of stage " + std::to_string(a.index);
    case act::drop:
      return "drop of activation " + std::to_string(a.index);
    case act::store:
      return "store of activation " + std::to_string(a.index);
    case act::load:
      return "load of activation " + std::to_string(a.index);
    case act::discard:
      return "discard of activation " + std::to_string(a.index);
  }
  return "unknown action " + std::to_string(static_cast<int>(a.what));
}

/// Time to move `bytes` at `bandwidth` bytes per unit of time, the last unit counted in full.
constexpr std::int64_t transfer_time(std::int64_t bytes, std::int64_t bandwidth) {
  return bytes / bandwidth + (bytes % bandwidth != 0);
}

namespace detail {

/// What is alive while actions are replayed.
class replayed {
 public:
  replayed(chain const& stages, std::vector<action> const& actions, std::int64_t bandwidth)
      : stages_(stages),
        last_(static_cast<std::int64_t>(stages.size())),
        bandwidth_(bandwidth),
        trains_(std::any_of(actions.begin(), actions.end(),
                            [](action const& a) { return a.what == act::backward; })),
        activation_(stages.size() + 1, false),
        copy_(stages.size() + 1, false),
        variant_(stages.size(), none),
        next_backward_(last_ - 1) {
    activation_[0] = true;
    if (trains_) result_.peak = live_ = gradient_bytes(stages);
    result_.actions = actions;
    for (; at_ < actions.size(); ++at_) perform(actions[at_]);
  }

  schedule finished() && {
    at_ = result_.actions.size();
    if (!turned_) fail("the end", "there was no turn");
    if (trains_ && next_backward_ >= 0)
      fail("the end", "stage " + std::to_string(next_backward_) + " had no backward");
    for (std::size_t i = 1; i < activation_.size(); ++i) {
      if (activation_[i]) fail("the end", "activation " + std::to_string(i) + " is still alive");
      if (copy_[i])
        fail("the end", "the copy of activation " + std::to_string(i) + " is still there");
    }
    for (std::size_t i = 0; i < variant_.size(); ++i)
      if (variant_[i] != none)
        fail("the end", "what stage " + std::to_string(i) + " saved is still alive");
    return std::move(result_);
  }

 private:
  static constexpr int none = -1;

  [[noreturn]] void fail(std::string const& what, std::string const& why) const {
    refuse("check", "action " + std::to_string(at_) + " (" + what + "): " + why);
  }
  void require(bool holds, action const& a, std::string_view why) const {
    if (!holds) fail(describe(a), std::string(why));
  }
  void require_index(action const& a, std::int64_t least, std::int64_t most) const {
    if (a.index < least || a.index > most)
      fail(describe(a),
           "index is outside " + std::to_string(least) + " to " + std::to_string(most));
  }

  std::int64_t bytes_of(std::size_t activation) const { return stages_[activation - 1].output; }

  void make(action const& a, std::size_t activation) {
    require(!activation_[activation], a, "its output is alive already");
    activation_[activation] = true;
    live_ += bytes_of(activation);
  }
  void note(std::int64_t scratch) { result_.peak = std::max(result_.peak, live_ + scratch); }
  void take(action const& a, std::int64_t time) {
    require(time <= std::numeric_limits<std::int64_t>::max() - result_.time, a,
            "the time up to here is more than 64 bits hold");
    result_.time += time;
  }

  void perform(action const& a) {
    auto const i = static_cast<std::size_t>(a.index);
    switch (a.what) {
      case act::pass:
        return require_index(a, 0, last_ - 1), pass(a, i);
      case act::run:
        return require_index(a, 0, last_ - 1), run(a, i);
      case act::turn:
        return turn(a);
      case act::backward:
        return require_index(a, 0, last_ - 1), backward(a, i);
      case act::drop:
        return require_index(a, 1, last_), drop(a, i);
      case act::store:
        return require_index(a, 1, last_), store(a, i);
      case act::load:
        return require_index(a, 1, last_), load(a, i);
      case act::discard:
        return require_index(a, 1, last_), discard(a, i);
    }
    fail(describe(a), "no such action");
  }

  void pass(action const& a, std::size_t i) {
    require(activation_[i], a, "its input is not alive");
    make(a, i + 1);
    note(stages_[i].scratch);
    take(a, stages_[i].forward);
    ++result_.forwards;
  }

  void run(action const& a, std::size_t i) {
    auto const& s = stages_[i];
    require(a.variant >= 0 && static_cast<std::size_t>(a.variant) < s.variants.size(), a,
            "there is no variant " + std::to_string(a.variant));
    require(trains_, a, "nothing has a backward");
    require(activation_[i], a, "its input is not alive");
    require(variant_[i] == none, a, "what it saves is alive already");
    auto const& v = s.variants[static_cast<std::size_t>(a.variant)];
    if (a.output) make(a, i + 1);
    variant_[i] = a.variant;
    live_ += v.saved;
    note(v.forward_scratch);
    take(a, a.output ? v.forward : v.replay);
    ++result_.forwards;
  }

  void turn(action const& a) {
    require(!turned_, a, "there was one before");
    require(activation_.back(), a, "the last activation is not alive");
    require(!trains_ || variant_.back() != none, a, "the last stage has not been run");
    turned_ = true;
  }

  void backward(action const& a, std::size_t i) {
    auto const& s = stages_[i];
    require(turned_, a, "there was no turn");
    require(a.index == next_backward_, a,
            "the next backward is that of stage " + std::to_string(next_backward_));
    require(variant_[i] != none, a, "what it needs has not been saved");
    require(activation_[i], a, "its input is not alive");
    require(!s.reads_output || activation_[i + 1], a, "it reads its output, which is not alive");
    auto const& v = s.variants[static_cast<std::size_t>(std::exchange(variant_[i], none))];
    note(v.backward_scratch);
    take(a, v.backward);
    live_ -= v.saved;
    --next_backward_;
  }

  void drop(action const& a, std::size_t i) {
    require(activation_[i], a, "it is not alive");
    activation_[i] = false;
    live_ -= bytes_of(i);
  }

  void store(action const& a, std::size_t i) {
    require(activation_[i], a, "it is not alive");
    require(!copy_[i], a, "there is a copy already");
    copy_[i] = true;
    second_ += bytes_of(i);
    result_.second_peak = std::max(result_.second_peak, second_);
    take(a, transfer_time(bytes_of(i), bandwidth_));
  }

  void load(action const& a, std::size_t i) {
    require(copy_[i], a, "there is no copy");
    make(a, i);
    note(0);
    take(a, transfer_time(bytes_of(i), bandwidth_));
  }

  void discard(action const& a, std::size_t i) {
    require(copy_[i], a, "there is no copy");
    copy_[i] = false;
    second_ -= bytes_of(i);
  }

  chain const& stages_;
  std::int64_t last_, bandwidth_;
  bool trains_, turned_ = false;
  std::vector<bool> activation_, copy_;
  std::vector<int> variant_;
  std::int64_t next_backward_, live_ = 0, second_ = 0;
  std::size_t at_ = 0;
  schedule result_;
};

}  // namespace detail

/// The schedule of these actions, with its figures: proven to read nothing that is not there, to
/// make nothing twice, to turn once, to have every backward once and in order, and to leave nothing
/// alive. Without any backward it must be a forward alone: passes, then the turn. `bandwidth` is
/// that of the second place in bytes per unit of time, at least 1.
/// Throws memfit::argument_error with the number of the action, what it is and what is wrong.
inline schedule check(chain const& stages, std::vector<action> const& actions,
                      std::int64_t bandwidth = std::numeric_limits<std::int64_t>::max()) {
  detail::require_chain("check", stages);
  detail::require_at_least("check", "bandwidth", bandwidth, 1);
  return detail::replayed(stages, actions, bandwidth).finished();
}

}  // namespace memfit::checkpoint
