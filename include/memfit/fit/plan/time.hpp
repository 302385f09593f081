// Seconds that a step takes, roughly: passes, starts of stages, traffic of the step and the link.
// Used by the planner to order what fits.
#pragma once

#include <cmath>
#include <cstdint>

#include "memfit/fit/device.hpp"
#include "memfit/fit/plan/activations.hpp"
#include "memfit/fit/training.hpp"

namespace memfit::fit::detail {

inline std::int64_t passes_of(training const& t) {
  return t.batch / t.micro_batch + (t.batch % t.micro_batch != 0);
}

/// Bytes to and from memory for gradients, sums and states, all micro-batches of a step together.
inline double step_traffic(training const& t, bytes const& b, std::int64_t passes) {
  auto const gradient = static_cast<double>(b.parameters);
  auto const sums = static_cast<double>(b.sums), states = static_cast<double>(b.states());
  auto const parameters = static_cast<double>(b.parameters + b.kept);
  auto const times = static_cast<double>(passes);
  if (t.accumulation == accumulation::folded)
    return times * ((t.clips ? 2 : 1) * gradient + 2 * (parameters + states));
  auto const stepped = sums > 0 ? sums : gradient;
  auto const norm = t.clips ? stepped : 0;
  auto const summed = sums > 0 ? times * (gradient + 2 * sums) : 0;
  return summed + norm + stepped + 2 * (parameters + states);
}

/// The products and launches of all micro-batches of a step.
inline double pass_seconds(training const& t, device const& d, pass_cost const& pass) {
  auto const share = static_cast<double>(t.batch) / static_cast<double>(t.micro_batch);
  auto const launches = static_cast<double>(passes_of(t) * pass.launches);
  return share * pass.seconds + launches * d.stage_seconds;
}

inline double seconds_of(training const& t, bytes const& b, device const& d,
                         pass_cost const& pass) {
  auto const passes = passes_of(t);
  auto const trips = t.accumulation == accumulation::folded ? static_cast<double>(passes) : 1.0;
  return pass_seconds(t, d, pass) + step_traffic(t, b, passes) / d.memory_bytes +
         2 * trips * static_cast<double>(b.host) / d.link_bytes;
}

/// To two digits: what differs by less is called equal.
inline double two_digits(double seconds) {
  if (!(seconds > 0)) return 0;
  auto const unit = std::pow(10.0, std::floor(std::log10(seconds)) - 1);
  return std::round(seconds / unit) * unit;
}

}  // namespace memfit::fit::detail
