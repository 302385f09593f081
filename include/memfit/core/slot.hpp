// A slot: one stored moment of a rule, by name and by the range of its values.
// Used by rules to declare what they keep, and by formats to choose a code for it.
#pragma once

namespace memfit {

/// The values a slot can hold: any sign, or never below zero.
enum class range { any, non_negative };

/// One moment that a rule keeps per parameter; the name is the field's usual one ("exp_avg").
struct slot {
  char const* name;
  memfit::range range;
};

}  // namespace memfit
