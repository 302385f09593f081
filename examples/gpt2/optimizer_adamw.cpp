#include "grouped_optimizer.hpp"

namespace gpt2 {

std::unique_ptr<optimizer> make_adamw(const optimizer_settings& s, weights<float>& parameters) {
  memfit::adamw const rule{
      .lr = s.lr, .beta1 = s.beta1, .beta2 = s.beta2, .eps = s.eps, .weight_decay = s.weight_decay};
  return make_grouped(rule, s, parameters);
}

}  // namespace gpt2
