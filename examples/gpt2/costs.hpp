// What the choices of the command line take, and what they cost in precision.
// Used where a run is estimated and fitted.
#pragma once

#include <memfit/fit/plan/types.hpp>

#include "choices.hpp"

namespace gpt2 {

memfit::fit::column_choice cost_of(precision_choice precision, column_choice column);

memfit::fit::state_choice cost_of(rule_choice rule, state_choice state);

}  // namespace gpt2
