// A slot: one stored moment of a rule, by name and by the range of its values.
// Used by rules to declare what they keep, and by formats to choose a code for it.
#pragma once

namespace memfit {

/// The values a slot can hold: any sign, or never below zero.
enum class range { any, non_negative };

/// What the codes of a block are relative to: its largest magnitude itself, or the next power of
/// two from there. The first follows averages best. The second suits a maximum, which is to stay as
/// it is while its block's largest value grows: codes that need not change do not move.
enum class scaling { largest, power_of_two };

/// One moment that a rule keeps per parameter; the name is the field's usual one ("exp_avg").
struct slot {
  char const* name;
  memfit::range range;
  memfit::scaling scaling = memfit::scaling::largest;
};

}  // namespace memfit
