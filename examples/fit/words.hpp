// A plan in words: types, names and the lines that say what to switch on.
// Used by memfit_fit's text and JSON.
#pragma once

#include <memfit/fit/plan/types.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "gpt2_options.hpp"

namespace advice {

// "memfit::optimizer<memfit::adamw, memfit::root8, memfit::corrected<memfit::bf16>>".
std::string optimizer_type(memfit::fit::training const& t);

// What else of memfit to use, a line each: sums, release, checkpoints.
words what_to_use(memfit::fit::plan const& p);

// "6.2 GB less, 0.1 s more", and the loss where it may differ.
std::string cost_of(memfit::fit::technique const& t);

// "4.1 s", "12 min".
std::string readable_seconds(double seconds);

std::string_view name_of(memfit::fit::accumulation a);
std::string_view name_of(memfit::fit::activations a);
std::string_view name_of(memfit::fit::precision p);

// With one space between.
std::string joined(words const& all);

}  // namespace advice
