// A double that carries a bound on what the same formula, evaluated in fp32 in any order, may miss
// it by. Used by the reference rules, so that every tolerance of the rule tests is derived, not
// chosen.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace reference {

/// Half a unit in the last place of fp32, relative, and half of its least subnormal.
inline constexpr double fp32_rounding = 0x1p-24;
inline constexpr double fp32_least_half = 0x1p-150;

/// Value in exact arithmetic (double) and the accumulated bound of an fp32 evaluation.
struct tracked {
  double value = 0;
  double bound = 0;

  tracked() = default;
  tracked(double constant) : value(constant), bound(rounding(constant)) {}
  tracked(double exact, double error) : value(exact), bound(error) {}

  /// A number that fp32 holds exactly.
  static tracked stored(double x) { return {x, 0}; }

  static double rounding(double x) { return std::fabs(x) * fp32_rounding + fp32_least_half; }
};

inline tracked rounded(double value, double inherited) {
  return {value, inherited + tracked::rounding(value)};
}
inline tracked operator-(tracked a) {
  return {-a.value, a.bound};
}
inline tracked operator+(tracked a, tracked b) {
  return rounded(a.value + b.value, a.bound + b.bound);
}
inline tracked operator-(tracked a, tracked b) {
  return a + -b;
}
inline tracked operator*(tracked a, tracked b) {
  return rounded(a.value * b.value,
                 std::fabs(a.value) * b.bound + std::fabs(b.value) * a.bound + a.bound * b.bound);
}
inline tracked operator/(tracked a, tracked b) {
  double const least = std::fabs(b.value) - b.bound;
  if (least <= 0) return {a.value / b.value, std::numeric_limits<double>::infinity()};
  double const quotient = a.value / b.value;
  return rounded(quotient, (a.bound + std::fabs(quotient) * b.bound) / least);
}
inline tracked sqrt(tracked a) {
  double const root = std::sqrt(a.value);
  return rounded(root, a.value > a.bound ? a.bound / root : std::sqrt(a.bound));
}
inline tracked larger(tracked a, tracked b) {
  return {std::fmax(a.value, b.value), std::fmax(a.bound, b.bound)};
}
inline tracked smaller(tracked a, tracked b) {
  return {std::fmin(a.value, b.value), std::fmax(a.bound, b.bound)};
}
/// -1, 0 or 1; what fp32 may give where it cannot tell.
inline tracked sign(tracked a) {
  if (a.value == 0) return tracked::stored(0);
  return std::fabs(a.value) > a.bound ? tracked::stored(std::copysign(1, a.value)) : tracked(0, 1);
}

inline double value_of(tracked a) {
  return a.value;
}
/// A norm that is summed in double: no further from the exact one than the values are, together.
inline tracked norm_of(std::vector<tracked> const& values) {
  double sum = 0, bounds = 0;
  for (auto const& x : values) {
    sum += x.value * x.value;
    bounds += x.bound * x.bound;
  }
  return {std::sqrt(sum), std::sqrt(bounds) + 1e-12 * std::sqrt(sum)};
}

}  // namespace reference
