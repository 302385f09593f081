// The dynamic map for values that look 32 entries up at once: one threshold, no case apart.
// Used by the format dynamic8 where a warp's threads hold the entries.
#pragma once

#include <cstdint>

#include "memfit/core/lanes.hpp"

namespace memfit::detail {

// The constants are aggregates that functions return: of a static object that a constructor makes,
// nvcc leaves nothing but zeros on the device.

/// Half of 10^(decade - 6).
MEMFIT_HD constexpr float dynamic_half_power(int decade) {
  float const t[7] = {0x1.0c6f7ap-21f,
                      0x1.4f8b58p-18f,
                      0x1.a36e2ep-15f,
                      0x1.0624dep-11f,
                      0x1.47ae14p-8f,
                      0x1.99999ap-5f,
                      0.5f};
  return t[decade];
}

/// Constants by the segment of a place, index + shift: half of [2^e, 2^(e+1)). The upper bits of
/// the pattern of 4 place, of either sign, name it modulo 32; zero is a segment by itself.
struct dynamic_segments {
  float start[32], step[32], origin[32], half_power[32];
};
template <class Half>
MEMFIT_HD constexpr dynamic_segments dynamic_segments_of() {
  dynamic_segments s{};
  constexpr int shift = static_cast<int>(Half::shift);
  float unit = 4.0f, part = 0.25f;
  int at = 2;
  for (int e = 0; e < 7 + shift; ++e, unit *= 2.0f, part *= 0.5f) {
    for (int upper = 0; upper < 2; ++upper, ++at) {
      s.start[at] = upper != 0 ? 2.0f * unit : unit;
      s.step[at] = 0.9f * part;
      s.origin[at] = upper != 0 ? 1.0f : 0.1f;
      s.half_power[at] = e < shift ? 0.0f : dynamic_half_power(e - shift);
    }
  }
  s.start[at] = unit;  // the value 1
  s.origin[at] = 1.0f;
  s.half_power[at] = 0.5f;
  return s;
}

/// 4 (code - zero + shift), from which dynamic_value_at computes.
template <class Half, class U>
MEMFIT_HD inline value_of<U> dynamic_place(U const& code, float zero) {
  return fma(to_float(code), 4.0f, 4.0f * (static_cast<float>(Half::shift) - zero));
}

/// dynamic_magnitude, from 4 times the place with any sign.
template <class Half, class F>
MEMFIT_HD inline F dynamic_value_at(F const& place) {
  static constexpr auto segments = dynamic_segments_of<Half>();
  auto const i = upper_bits<22>(place);
  auto const from_start = abs(place) - lookup(segments.start, i);
  auto const step = lookup(segments.step, i), origin = lookup(segments.origin, i);
  auto const low = fma(from_start, step, origin);
  auto const high = fma(from_start + F(4.0f), step, origin);
  return (low + high) * lookup(segments.half_power, i);
}

/// The pattern of 8/9 2^-126 and 4 units in the last place: where every decade's line starts at 0.
inline constexpr std::uint32_t dynamic_line_level = 0x0071c720u;

/// Constants by octave of the magnitude, from 2^-31: whether and where it passes into the next
/// decade, and those of the decade in which it begins. A magnitude beyond the threshold is looked
/// up in the next octave, which begins in the same decade.
///
/// A line rises from 2^-126 to 2^-125 over a decade, so that its pattern is the place of the
/// decade's values once it is taken times `parts` and divided by 2^32.
struct dynamic_octaves {
  float threshold[32], slope[32];
  std::uint32_t parts[32];
};

/// What gives a level line this place and a half.
MEMFIT_HD constexpr std::uint32_t dynamic_parts_of(std::uint32_t place) {
  return static_cast<std::uint32_t>(((std::uint64_t{place} * 2 + 1) << 31) / dynamic_line_level);
}

template <class Half>
MEMFIT_HD constexpr dynamic_octaves dynamic_octaves_of() {
  dynamic_octaves o{};
  float const slopes[7] = {0x1.0f4472p-106f, 0x1.b2071cp-110f, 0x1.5b38e4p-113f, 0x1.15c71cp-116f,
                           0x1.bc71c8p-120f, 0x1.638e38p-123f, 0x1.1c71c8p-126f};
  float start = 0x1p-31f;
  for (int i = 0; i < 32; ++i, start *= 2.0f) {
    int decade = -1;
    o.threshold[i] = 4.0f;
    for (int d = 0; d < 8; ++d) {
      float const first = d == 0 ? Half::first_boundary : Half::first_of(d);
      if (first <= start) decade = d;
      if (first > start && first < 2.0f * start) o.threshold[i] = first;
    }
    bool const lone = decade < 0 || decade == 7;
    o.slope[i] = lone ? 0.0f : slopes[decade];
    o.parts[i] = !lone        ? 1u << (9 + decade + static_cast<int>(Half::shift))
                 : decade < 0 ? dynamic_parts_of(Half::shift)
                              : dynamic_parts_of(128u << Half::shift);
  }
  return o;
}

/// A magnitude on its way to a code.
template <class F>
struct dynamic_spot {
  F a;
  uint_of<F> code;  // of a, not of -a
  uint_of<F> rest;  // how far the line is above it, as a fraction of 2^32
};
template <class Half, class F>
MEMFIT_HD inline dynamic_spot<F> dynamic_spot_of(F const& a) {
  using U = uint_of<F>;
  static constexpr auto octaves = dynamic_octaves_of<Half>();
  auto const octave = upper_bits<23>(a);
  auto const begun = next_where_at_least(octave, a, lookup(octaves.threshold, octave));
  auto const line = fma(a, lookup(octaves.slope, begun), from_bits<F>(U(dynamic_line_level)));
  // Above the last value of a decade the line goes on, the code does not.
  auto const u = smaller(bits(line), 0x00ffffffu);
  auto const parts = lookup(octaves.parts, begun);
  return {a, high_product_plus(u, parts, U(Half::zero - Half::shift)), u * parts};
}

/// Where the line is to be trusted, `rest` is not below this. Rounded constants move it by less
/// than 4 units in the last place, and boundaries lie 4 of them above whole codes.
inline constexpr std::uint32_t dynamic_least_rest = 8u << 16;

}  // namespace memfit::detail
