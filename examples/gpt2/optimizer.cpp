#include "optimizer.hpp"

namespace gpt2 {

std::unique_ptr<optimizer> make_optimizer(const optimizer_settings& settings,
                                          weights<float>& parameters) {
  switch (settings.rule) {
    case rule_choice::adamw:
      return make_adamw(settings, parameters);
    case rule_choice::adam:
      return make_adam(settings, parameters);
    case rule_choice::momentum:
      return make_momentum(settings, parameters);
    case rule_choice::sgd:
      return make_sgd(settings, parameters);
  }
  return nullptr;
}

}  // namespace gpt2
