// Lists of tensors that an executor works on together, behind small virtual faces.
// Used by executors to implement, and by managers such as the optimizer to hold.
#pragma once

#include <cstdint>

#include "memfit/core/owner.hpp"
#include "memfit/exec/concept.hpp"

namespace memfit {

namespace detail {

/// Grows a vector before something is added to it that must not fail.
template <class Vector>
void room_for_one_more(Vector& v) {
  if (v.size() == v.capacity()) v.reserve(2 * v.size() + 16);
}

}  // namespace detail

/// What a step over many tensors needs besides them.
template <class Rule>
struct step_call {
  /// One for each of `groups` groups, in the host's memory; read before step returns.
  Rule const* rules = nullptr;
  std::int64_t groups = 1;
  Rule const* rules_at = nullptr;  ///< where not null, the executor reads them here instead
  std::uint64_t seed = 0;
  gate gate_at = {};
  std::uint64_t* nonfinite = nullptr;  ///< grows by the elements left alone
  window_part part = {};               ///< other than all of a window for folding rules alone
};

/// Tensors of one rule, state format and parameter column that are stepped together, in the order
/// in which they were added. What throws has changed nothing, but for step, which may be done in
/// part after a device_error.
template <class Rule>
class step_list {
 public:
  virtual ~step_list() = default;
  /// Whether the executor can read and write what lies there.
  virtual bool reaches(void const* data) const = 0;
  virtual void add(step_item<Rule> const& item) = 0;
  /// The tensor takes no part from now on.
  virtual void retire(std::int64_t index) = 0;
  virtual void set_gradient(std::int64_t index, void const* data, scalar_kind kind) = 0;
  /// Which of the rules steps the tensor; below zero: none.
  virtual void set_group(std::int64_t index, std::int32_t group) = 0;
  /// What the list itself takes of the executor's memory.
  virtual std::int64_t bytes() const = 0;
  /// Steps tensors first … first + count - 1, each by its own counter; waits for nothing. Where the
  /// gate says skip nothing changes, counters included.
  virtual void step(std::int64_t first, std::int64_t count, step_call<Rule> const& call) = 0;
};

/// One tensor's share of an addition: sums in a parameter column, and what is added to them.
struct sum_item {
  void* visible = nullptr;  ///< the sums
  void* kept = nullptr;     ///< what the column keeps beside them, or null
  void* source = nullptr;   ///< null: zeros
  scalar_kind source_kind = scalar_kind::fp32;
  std::int64_t count = 0;
  std::int64_t id = 0;  ///< keys the noise, with the seed and the draw

  MEMFIT_HD std::int64_t active() const { return count; }
};

/// What an addition needs besides the tensors. What is pointed to is the executor's memory.
struct sum_call {
  float const* weight = nullptr;       ///< null: 1; at 0 every source counts as zeros
  std::int64_t const* draw = nullptr;  ///< number of this addition, for the noise; null: 0
  std::uint64_t seed = 0;
  bool overwrite = false;              ///< what the sums were does not count and is not read
  bool clear_source = false;           ///< the sources become zeros
  std::uint32_t* nonfinite = nullptr;  ///< becomes 1 where a sum is not finite

  MEMFIT_HD float factor() const { return weight != nullptr ? *weight : 1.0f; }
  MEMFIT_HD noise_key key(sum_item const& item) const {
    return make_noise_key(seed, draw != nullptr ? *draw : 0, item.id);
  }
};

/// Sums in one kind of column to which others are added in one pass, all tensors together.
class sum_list {
 public:
  virtual ~sum_list() = default;
  /// Whether the executor can read and write what lies there.
  virtual bool reaches(void const* data) const = 0;
  virtual void add(sum_item const& item) = 0;
  virtual void set(std::int64_t index, void* source, scalar_kind kind) = 0;
  /// Adds every source, times the weight, to its sums; waits for nothing.
  virtual void run(sum_call const& call) = 0;
};

/// Tensors whose squares are summed together, in the order in which they were added.
class norm_list {
 public:
  virtual ~norm_list() = default;
  virtual void add(std::int64_t count) = 0;
  virtual void set(std::int64_t index, void const* data, scalar_kind kind) = 0;
  /// Where the root of the sum will be, in the executor's memory; waits for nothing.
  virtual double const* compute() = 0;
  /// The last root. Waits.
  virtual double value_sync() const = 0;
};

}  // namespace memfit
