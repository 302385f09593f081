// A schedule made ready to run: what is a replay, and where every buffer lies.
// Used by the runner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/check.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"
#include "memfit/checkpoint/run/carver.hpp"
#include "memfit/checkpoint/run/layout.hpp"
#include "memfit/core/error.hpp"

namespace memfit::checkpoint {

/// The chain with all bytes rounded up to the alignment: schedules planned for it promise the very
/// bytes that an arena takes.
inline chain rounded(chain stages) {
  for (auto& s : stages) {
    for (auto* bytes : {&s.output, &s.gradient, &s.scratch}) *bytes = rounded(*bytes);
    for (auto& v : s.variants)
      for (auto* bytes : {&v.saved, &v.forward_scratch, &v.backward_scratch})
        *bytes = rounded(*bytes);
  }
  return stages;
}

namespace detail {

/// An action with the offsets of what it makes or uses, in the arena and in the second place.
struct operation {
  act what = act::pass;
  bool output = false, replay = false;
  int variant = 0;
  std::int64_t index = 0;
  std::int64_t made = 0, saved = 0, scratch = 0, copy = 0;
};

struct program {
  std::vector<operation> operations;
  std::size_t turn = 0;             ///< which of them is the turn
  bool trains = false;              ///< whether there are backwards
  std::int64_t gradient_bytes = 0;  ///< at the front of the arena
  std::int64_t arena_bytes = 0;
  std::int64_t second_bytes = 0;
};

/// Turns actions into operations. While it runs, an operation names blocks where it will have
/// offsets.
class compiler {
 public:
  compiler(chain const& stages, std::vector<action> const& actions)
      : stages_(stages),
        activations_(stages.size() + 1),
        saved_(stages.size()),
        copies_(stages.size() + 1),
        done_(stages.size(), false),
        variants_(stages.size()),
        end_(static_cast<std::int64_t>(actions.size())) {
    result_.operations.reserve(actions.size());
    for (auto const& a : actions) add(a);
  }

  program finished() && {
    if (result_.trains) result_.gradient_bytes = gradient_bytes(rounded(stages_));
    result_.arena_bytes = place(arena_) + result_.gradient_bytes;
    result_.second_bytes = place(second_);
    for (auto& o : result_.operations) {
      o.made = offset(arena_, o.made, result_.gradient_bytes);
      o.saved = offset(arena_, o.saved, result_.gradient_bytes);
      o.scratch = offset(arena_, o.scratch, result_.gradient_bytes);
      o.copy = offset(second_, o.copy, 0);
    }
    return std::move(result_);
  }

 private:
  static constexpr std::int64_t none = -1;

  static std::int64_t offset(std::vector<block> const& blocks, std::int64_t b, std::int64_t base) {
    return b == none ? 0 : base + blocks[static_cast<std::size_t>(b)].offset;
  }

  std::int64_t begin(std::vector<block>& blocks, std::int64_t bytes) const {
    if (bytes == 0) return none;
    blocks.push_back({rounded(bytes), now(), end_, 0});
    return static_cast<std::int64_t>(blocks.size()) - 1;
  }
  void end(std::vector<block>& blocks, std::int64_t b) const {
    if (b != none) blocks[static_cast<std::size_t>(b)].dies = now();
  }
  std::int64_t scratch(std::int64_t bytes) {
    auto const b = begin(arena_, bytes);
    end(arena_, b);
    return b;
  }
  std::int64_t now() const { return static_cast<std::int64_t>(result_.operations.size()); }

  void add(action const& a) {
    auto const i = static_cast<std::size_t>(a.index);
    operation o{a.what, a.output, false, a.variant, a.index, none, none, none, none};
    switch (a.what) {
      case act::pass:
        o.output = true;
        o.variant = -1;
        o.replay = done_[i];
        done_[i] = true;
        o.made = activations_[i + 1] = begin(arena_, stages_[i].output);
        o.scratch = scratch(stages_[i].scratch);
        break;
      case act::run: {
        auto const& v = stages_[i].variants[static_cast<std::size_t>(a.variant)];
        o.replay = done_[i];
        done_[i] = true;
        variants_[i] = a.variant;
        o.saved = saved_[i] = begin(arena_, v.saved);
        if (a.output) o.made = activations_[i + 1] = begin(arena_, stages_[i].output);
        o.scratch = scratch(v.forward_scratch);
        break;
      }
      case act::turn:
        result_.turn = result_.operations.size();
        break;
      case act::backward:
        result_.trains = true;
        o.variant = variants_[i];
        o.scratch =
            scratch(stages_[i].variants[static_cast<std::size_t>(o.variant)].backward_scratch);
        end(arena_, saved_[i]);
        break;
      case act::drop:
        end(arena_, activations_[i]);
        break;
      case act::store:
        o.copy = copies_[i] = begin(second_, stages_[i - 1].output);
        break;
      case act::load:
        o.copy = copies_[i];
        o.made = activations_[i] = begin(arena_, stages_[i - 1].output);
        break;
      case act::discard:
        end(second_, copies_[i]);
        break;
    }
    result_.operations.push_back(o);
  }

  chain const& stages_;
  std::vector<std::int64_t> activations_, saved_, copies_;  // blocks
  std::vector<bool> done_;
  std::vector<int> variants_;
  std::int64_t end_;
  std::vector<block> arena_, second_;
  program result_;
};

/// Throws argument_error unless the schedule is valid for this chain and its bytes are those it
/// promises.
inline program compile(chain const& stages, schedule const& plan) {
  auto const found = check(stages, plan.actions);
  if (found.peak != plan.peak || found.second_peak != plan.second_peak)
    throw argument_error("memfit::checkpointed: the schedule promises a peak of " +
                         std::to_string(plan.peak) + " bytes and " +
                         std::to_string(plan.second_peak) + " in the second place, on this chain " +
                         "it has " + std::to_string(found.peak) + " and " +
                         std::to_string(found.second_peak) + ": it was planned for another one");
  if (found.peak > INT64_MAX / 4)
    throw memory_error("memfit::checkpointed: no memory holds the schedule's peak of " +
                       std::to_string(found.peak) + " bytes");
  return compiler(stages, plan.actions).finished();
}

}  // namespace detail

}  // namespace memfit::checkpoint
