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
  using fit::precision::bits24;
  switch (precision) {
    case precision_choice::fp32:
      return {memfit::cost_of_column<memfit::fp32>()};
    case precision_choice::bf16:
      if (column == column_choice::corrected)
        return {memfit::cost_of_column<memfit::corrected<memfit::bf16>>(), bits24, 0.003,
                "activations and gradients have 16 bits, parameters 24"};
      return {memfit::cost_of_column<memfit::split<memfit::bf16>>(), bits24, 0.002,
              "activations and gradients have 16 bits, parameters all 32 of fp32"};
    case precision_choice::fp16:
      return {memfit::cost_of_column<memfit::master<memfit::fp16>>(), bits24, 0.002,
              "activations and gradients have 16 bits, parameters all 32 of fp32"};
  }
  return {};
}

fit::state_choice cost_of(rule_choice rule, state_choice state) {
  using fit::precision::bits24;
  auto const cost = cost_in(rule, state);
  switch (state) {
    case state_choice::fp32:
      return {cost};
    case state_choice::bf16:
      return {cost, bits24, 0.003, "moments have 16 bits"};
    case state_choice::root8:
      return {cost, bits24, 0.003, "moments have 8 bits"};
    case state_choice::dynamic8:
    case state_choice::float8:
    case state_choice::linear8:
      return {cost, bits24, 0.01, "moments have 8 bits, less close than those of root8"};
    case state_choice::packed4:
      return {cost, fit::precision::bits16, 0.01, "moments have 4 bits"};
  }
  return {};
}

}  // namespace gpt2
