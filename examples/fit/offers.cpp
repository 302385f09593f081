#include "offers.hpp"

#include <memfit/cost.hpp>

#include "../gpt2/costs.hpp"

namespace advice {

namespace fit = memfit::fit;

fit::offers all_offers() {
  using gpt2::cost_of;
  using enum gpt2::precision_choice;
  using enum gpt2::column_choice;
  fit::offers offered;
  for (auto const& column :
       {cost_of(fp32, exact),
        cost_of(bf16, exact),
        cost_of(bf16, corrected),
        {memfit::cost_of_column<memfit::stochastic<memfit::bf16>>(), fit::precision::bits16, 0.01,
         "all has 16 bits; updates of parameters are rounded at random, right in the mean"}})
    for (auto const state :
         {gpt2::state_choice::fp32, gpt2::state_choice::root8, gpt2::state_choice::packed4})
      offered.storages.push_back({column, cost_of(gpt2::rule_choice::adamw, state)});
  return offered;
}

}  // namespace advice
