#include "grouped_optimizer.hpp"

namespace gpt2 {

std::unique_ptr<optimizer> make_momentum(const optimizer_settings& s, weights<float>& parameters) {
  memfit::momentum rule;
  rule.lr = s.lr;
  rule.momentum = s.momentum;
  rule.weight_decay = s.weight_decay;
  return make_grouped(rule, s, parameters);
}

}  // namespace gpt2
