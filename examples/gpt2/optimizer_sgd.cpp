#include "grouped_optimizer.hpp"

namespace gpt2 {

std::unique_ptr<optimizer> make_sgd(const optimizer_settings& s, weights<float>& parameters) {
  return make_grouped(memfit::sgd{.lr = s.lr, .weight_decay = s.weight_decay}, s, parameters);
}

}  // namespace gpt2
