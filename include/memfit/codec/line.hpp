// Codes by a line: an index that a few float operations give all but surely, and the exact choice
// beside a boundary. Used by the formats whose values lie on curves.
#pragma once

#include <cstdint>

#include "memfit/core/lanes.hpp"

namespace memfit::detail {

/// Lines are evaluated from 256 upwards, where 15 bits of a float are the fraction: 256 is this
/// many whole units.
inline constexpr std::uint32_t line_unit_bits = 15;
inline constexpr std::uint32_t line_start = 0x43800000u >> line_unit_bits;

/// Boundaries lie this far above whole numbers: a line that arithmetic moves by less than 4 units
/// in the last place can pick a wrong side from 0 to 7 of them only.
inline constexpr float line_margin = 0x1p-13f;

/// Whether the line is to be trusted, by its pattern.
template <class U>
MEMFIT_HD inline auto line_is_clear(U const& line) {
  return has_bits(line, (1u << line_unit_bits) - 8u);
}

/// The index beside the boundary nearest to the line, from 0.
template <class U>
MEMFIT_HD inline U line_beside_boundary(U const& line) {
  return ((line + (1u << (line_unit_bits - 1))) >> line_unit_bits) - line_start;
}

/// Marks where a line is not to be trusted.
template <class F>
MEMFIT_HD inline void note_unclear(uint_of<F> const& line, doubt_of<F>& unsure) {
  if constexpr (requires { unsure.note(line, 8u); })
    unsure.note(line & ((1u << line_unit_bits) - 1u), 8u);
  else
    unsure = unsure | !line_is_clear(line);
}

/// This index or the one below it, decided exactly; of two equally near values the larger.
/// `value(index)` increases from 0.
template <class F, class Value>
MEMFIT_HD inline uint_of<F> nearest_index(F const& a, uint_of<F> const& index, Value const& value) {
  using U = uint_of<F>;
  auto const above = larger(index, 1u);
  F const low = value(U(above - 1u));
  F const high = value(above);
  auto const sum = low + high;
  auto const lost = low - (sum - high);
  auto const twice = a + a;
  auto const reaches = (twice > sum) | ((twice == sum) & (lost <= F(0.0f)));
  return subtract_where(!reaches, above, 1u);
}

}  // namespace memfit::detail
