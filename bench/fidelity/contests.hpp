// The contests of the fidelity bench. Used by its main program.
#pragma once

#include <memfit/rule/adaptive.hpp>
#include <memfit/rule/ademamix.hpp>
#include <memfit/rule/amsgrad.hpp>
#include <memfit/rule/momentum.hpp>
#include <memfit/rule/nadam.hpp>
#include <memfit/rule/radam.hpp>
#include <memfit/rule/root.hpp>
#include <memfit/rule/sign.hpp>

#include "replay.hpp"

namespace memfit::bench {

/// A rule with every format of the library, by memfit's own step.
template <class Rule>
contest contest_of();

template <>
contest contest_of<adamw>();
template <>
contest contest_of<amsgradw>();
template <>
contest contest_of<nadam>();
template <>
contest contest_of<radam>();
template <>
contest contest_of<ademamix>();
template <>
contest contest_of<rmsprop>();
template <>
contest contest_of<adagrad>();
template <>
contest contest_of<momentum>();
template <>
contest contest_of<lion>();
template <>
contest contest_of<signum>();

/// AdamW in double whose moments pass through tables of values between steps: other designs of 4
/// and 8 bits, those of papers among them.
contest contest_of_designs();

}  // namespace memfit::bench
