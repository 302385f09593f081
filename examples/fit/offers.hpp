// What memfit has to train in less memory, as its planner wants to know it.
// Used by memfit_fit.
#pragma once

#include <memfit/fit/plan/types.hpp>

namespace advice {

// AdamW with the state formats and parameter columns to begin with: of those with the same bytes
// the most faithful.
memfit::fit::offers all_offers();

}  // namespace advice
