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
  Rule rule;
  Rule const* rule_at = nullptr;  ///< where not null, the executor reads the rule here instead
  std::uint64_t seed = 0;
  gate gate_at = {};
  std::uint64_t* nonfinite = nullptr;  ///< grows by the elements left alone
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
  /// What the list itself takes of the executor's memory.
  virtual std::int64_t bytes() const = 0;
  /// Steps tensors first … first + count - 1, each by its own counter; waits for nothing. Where the
  /// gate says skip nothing changes, counters included.
  virtual void step(std::int64_t first, std::int64_t count, step_call<Rule> const& call) = 0;
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
