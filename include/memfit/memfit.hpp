// Everything that any C++20 compiler can use, in one include.
// Used by programs that do not mind its cost; the headers it names are smaller doors.
#pragma once

#include "memfit/accumulator.hpp"
#include "memfit/cast.hpp"
#include "memfit/checkpoint/plan.hpp"
#include "memfit/checkpoint/profile.hpp"
#include "memfit/checkpoint/run.hpp"
#include "memfit/clip.hpp"
#include "memfit/cost.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/fit/estimate.hpp"
#include "memfit/fit/plan.hpp"
#include "memfit/fit/transformer.hpp"
#include "memfit/gradients.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/quantize.hpp"
#include "memfit/release.hpp"
#include "memfit/scaler.hpp"
#include "memfit/step.hpp"
