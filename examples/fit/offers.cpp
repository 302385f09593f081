#include "offers.hpp"

#include <memfit/codec/packed4.hpp>
#include <memfit/codec/root.hpp>
#include <memfit/cost.hpp>
#include <memfit/rule/adaptive.hpp>

#include <vector>

#include "gpt2_options.hpp"

namespace advice {

namespace fit = memfit::fit;
using fit::precision;

namespace {

std::vector<fit::column_choice> columns() {
  using namespace memfit;
  return {{cost_of_column<fp32>()},
          {cost_of_column<split<bf16>>(), precision::bits24, 0.002,
           "activations and gradients have 16 bits, parameters all 32 of fp32"},
          {cost_of_column<corrected<bf16>>(), precision::bits24, 0.003,
           "activations and gradients have 16 bits, parameters 24"},
          {cost_of_column<stochastic<bf16>>(), precision::bits16, 0.01,
           "all has 16 bits; updates of parameters are rounded at random, right in the mean"}};
}

std::vector<fit::state_choice> states() {
  using namespace memfit;
  return {{cost_of<adamw, fp32>()},
          {cost_of<adamw, root8>(), precision::bits24, 0.003, "moments have 8 bits"},
          {cost_of<adamw, packed4>(), precision::bits16, 0.01, "moments have 4 bits"}};
}

}  // namespace

fit::offers all_offers() {
  fit::offers offered;
  for (auto const& column : columns())
    for (auto const& state : states()) offered.storages.push_back({column, state});
  return offered;
}

fit::offers gpt2_offers() {
  auto offered = all_offers();
  std::erase_if(offered.storages, [](fit::storage_choice const& s) {
    return !gpt2_storage_options(s.column.cost, s.states.cost);
  });
  return offered;
}

}  // namespace advice
