// What memfit has to train in less memory, as its planner wants to know it.
// Used by memfit_fit and by gpt2_train, which has a part of it built in.
#pragma once

#include <memfit/fit/plan/types.hpp>

namespace advice {

// AdamW with the state formats and parameter columns to begin with: of those with the same bytes
// the most faithful. The shares by which losses are let differ hold for models of millions of
// parameters; see examples/fit/README.md.
memfit::fit::offers all_offers();

// Those of these that gpt2_train has options for.
memfit::fit::offers gpt2_offers();

}  // namespace advice
