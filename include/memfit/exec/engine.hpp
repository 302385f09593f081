// An executor behind a small virtual face, so that an optimizer's type does not name it.
// Used by the optimizer, which picks the engine from the executor it is given.
#pragma once

#include <utility>

#include "memfit/exec/list.hpp"
#include "memfit/exec/machine.hpp"

namespace memfit::detail {

/// Memory and steps of one executor; tensors that are not quantized keep fp32 moments.
template <class Rule>
class engine : public machine<> {
 public:
  owner<step_list<Rule>> quantized, exact;
};

template <class E, class Rule, class Format, class Column>
class engine_on final : public machine_on<E, engine<Rule>> {
 public:
  explicit engine_on(E exec) : machine_on<E, engine<Rule>>(std::move(exec)) {
    this->quantized = this->exec_.template steps<Rule, Format, Column>();
    this->exact = this->exec_.template steps<Rule, fp32, Column>();
  }
};

}  // namespace memfit::detail
