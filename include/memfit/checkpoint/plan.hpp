// Checkpointing plans: which activations to keep, drop and recompute. Integers alone, no tensors.
// Used by whoever asks what a budget costs, and with checkpoint/run.hpp to carry a plan out.
#pragma once

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/check.hpp"
#include "memfit/checkpoint/plan/revolve.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"
#include "memfit/checkpoint/plan/simple.hpp"
#include "memfit/checkpoint/plan/within.hpp"
