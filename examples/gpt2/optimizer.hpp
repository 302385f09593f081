// One face for every memfit optimizer that the command line can name: rule and state format chosen
// at run time. Used by the devices, which make it, and by the update.
#pragma once

#include <memfit/core/tensor.hpp>
#include <memfit/exec/concept.hpp>

#include <memory>
#include <variant>
#include <vector>

#include "choices.hpp"
#include "states.hpp"
#include "weights.hpp"

namespace gpt2 {

struct optimizer_settings {
  rule_choice rule = rule_choice::adamw;
  state_choice state = state_choice::fp32;
  column_choice column = column_choice::exact;
  double lr = 1e-3, weight_decay = 0.1;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, momentum = 0.9;
};

template <class T>
using gradients_in = std::vector<memfit::tensor_ref<const T>>;

// A gradient for each parameter, in the order of `all`.
using gradient_list = std::variant<gradients_in<float>, gradients_in<bf16>, gradients_in<fp16>>;

// Holds on to the parameters it was made for. Weight decay acts on matrices only.
template <class T>
class optimizer {
 public:
  virtual ~optimizer() = default;
  virtual void step(const gradient_list& gradients, const memfit::gate& gate, double lr) = 0;
  // What memfit's gradient_release asks of an optimizer; see there. Only the rules that fold are
  // given parts of windows.
  static constexpr bool folds = true;
  [[nodiscard]] virtual std::size_t size() const = 0;
  [[nodiscard]] virtual index count(std::size_t number) const = 0;
  virtual void set_lr(double lr) = 0;
  virtual void check_some(const std::vector<std::size_t>& indices,
                          const std::vector<memfit::scalar_view>& gradients) = 0;
  virtual void step_some(const std::vector<std::size_t>& indices,
                         const std::vector<memfit::scalar_view>& gradients,
                         const memfit::gate& gate, const memfit::window_part& part) = 0;
  // So many values of a parameter, by its place in `all`, from this element on, with what is kept
  // beside them. Waits for the device.
  [[nodiscard]] virtual std::vector<float> values(std::size_t parameter, index first,
                                                  index count) const = 0;
  virtual void add_states(state_parts& to) = 0;
};

}  // namespace gpt2
