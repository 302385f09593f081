// What a run takes, before it takes it; and what it turns on to fit into given bytes.
// Used by the trainer, with the library's estimate and plans.
#pragma once

#include <memfit/fit/training.hpp>

#include <string>

#include "budget.hpp"
#include "options.hpp"

namespace gpt2 {

// What the process takes beside the memory that it counts, at most: code, libraries, what oneDNN
// compiles, stacks, and the rests of pages and of the heap.
inline constexpr index process_bytes = index{32} << 20;

// What products work in beside, at most, which no estimate has: it follows from oneDNN's choices.
inline constexpr index scratch_bytes = index{4} << 20;

// What a run knows when it has read its data: their bytes with the batches cut from them, and the
// bytes that are free.
struct surroundings {
  index data = 0, free = 0;
};

// By category, as the run would take them.
byte_counts estimated(const options& o, const surroundings& in);

// Throws user_error with the estimate where the memory limit or what is free cannot hold it.
void require_room(const options& o, const surroundings& in);

struct fitted_options {
  options chosen;
  std::string text;  // for the user: what is turned on, and what it takes
};

// The fastest way that fits the bytes of --fit, with what the command line fixes as it is, and with
// the limit that keeps it there. Throws user_error where there is none, with what is missing.
fitted_options fitted(const options& o, const surroundings& in);

}  // namespace gpt2
