// One face for every memfit optimizer that the command line can name: rule and state format chosen
// at run time. Used by the devices, which make it, and the trainer.
#pragma once

#include <memory>

#include "choices.hpp"
#include "weights.hpp"

namespace gpt2 {

struct optimizer_settings {
  rule_choice rule = rule_choice::adamw;
  state_choice state = state_choice::fp32;
  double lr = 1e-3, weight_decay = 0.1;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, momentum = 0.9;
};

// Holds on to the parameters it was made for. Weight decay acts on matrices only. What parameters
// of 16 bits lack of float's precision it keeps beside its states.
template <class T>
class optimizer {
 public:
  virtual ~optimizer() = default;
  virtual void step(weights<T>& gradients, double lr) = 0;
  [[nodiscard]] virtual index state_bytes() const = 0;
};

}  // namespace gpt2
