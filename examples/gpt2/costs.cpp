#include "costs.hpp"

#include <memfit/cost.hpp>
#include <memfit/optimizer.hpp>

namespace gpt2 {

namespace fit = memfit::fit;

namespace {

template <class Rule>
fit::state_cost cost_in(state_choice state) {
  switch (state) {
    case state_choice::fp32:
      return memfit::cost_of<Rule, memfit::fp32>();
    case state_choice::bf16:
      return memfit::cost_of<Rule, memfit::bf16>();
    case state_choice::root8:
      return memfit::cost_of<Rule, memfit::root8>();
    case state_choice::dynamic8:
      return memfit::cost_of<Rule, memfit::dynamic8>();
    case state_choice::float8:
      return memfit::cost_of<Rule, memfit::float8>();
    case state_choice::linear8:
      return memfit::cost_of<Rule, memfit::linear8>();
    case state_choice::packed4:
      return memfit::cost_of<Rule, memfit::packed4>();
  }
  return {};
}

fit::state_cost cost_in(rule_choice rule, state_choice state) {
  switch (rule) {
    case rule_choice::adamw:
      return cost_in<memfit::adamw>(state);
    case rule_choice::adam:
      return cost_in<memfit::adam>(state);
    case rule_choice::momentum:
      return cost_in<memfit::momentum>(state);
    case rule_choice::sgd:
      return cost_in<memfit::sgd>(state_choice::fp32);
  }
  return {};
}

}  // namespace

fit::column_choice cost_of(precision_choice precision, column_choice column) {
  switch (precision) {
    case precision_choice::fp32:
      return {memfit::cost_of_column<memfit::fp32>(), fit::precision::exact, 0, ""};
    case precision_choice::bf16:
      if (column == column_choice::corrected)
        return {memfit::cost_of_column<memfit::corrected<memfit::bf16>>(), fit::precision::bits24,
                0.005, "parameters of 24 bits; activations and gradients of 16"};
      return {memfit::cost_of_column<memfit::split<memfit::bf16>>(), fit::precision::bits24, 0.005,
              "activations and gradients of 16 bits"};
    case precision_choice::fp16:
      return {memfit::cost_of_column<memfit::master<memfit::fp16>>(), fit::precision::bits24, 0.005,
              "activations and gradients of 16 bits, with a loss scale"};
  }
  return {};
}

fit::state_choice cost_of(rule_choice rule, state_choice state) {
  auto const graded = [&](fit::precision precision, double loss,
                          const char* effect) -> fit::state_choice {
    return {cost_in(rule, state), precision, loss, effect};
  };
  switch (state) {
    case state_choice::fp32:
      return graded(fit::precision::exact, 0, "");
    case state_choice::bf16:
    case state_choice::root8:
      return graded(fit::precision::bits24, 0.005, "moments rounded at every step");
    case state_choice::dynamic8:
    case state_choice::float8:
    case state_choice::linear8:
      return graded(fit::precision::bits24, 0.02, "moments rounded at every step");
    case state_choice::packed4:
      return graded(fit::precision::bits16, 0.05, "moments of 4 bits");
  }
  return {};
}

}  // namespace gpt2
