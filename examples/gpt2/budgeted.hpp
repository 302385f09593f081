// A memfit executor whose every allocation counts in a budget, by what it is for.
// Used by the devices of the GPT-2 example, in place of the executor itself.
#pragma once

#include <memfit/core/memory.hpp>

#include <utility>

#include "budget.hpp"

namespace gpt2 {

category category_of(memfit::memory_use use);

// Gives back what has been taken for a buffer when that goes.
memfit::buffer counted(budget& counts, category in, memfit::buffer inner);

template <class Executor>
class budgeted : public Executor {
 public:
  budgeted(Executor exec, budget& counts) : Executor{std::move(exec)}, budget_{&counts} {}

  // Throws also what budget::take throws.
  [[nodiscard]] memfit::buffer allocate(index bytes,
                                        memfit::memory_use use = memfit::memory_use::other) const {
    auto const in = category_of(use);
    budget_->take(in, bytes);
    try {
      return counted(*budget_, in, Executor::allocate(bytes));
    } catch (...) {
      budget_->give_back(in, bytes);
      throw;
    }
  }

 private:
  budget* budget_;
};

}  // namespace gpt2
