// A checkpoint schedule as a picture: what is computed, kept and dropped, and the bytes it takes.
// Used by the trainer's --checkpoint-report, in the terminal and as SVG.
#pragma once

#include <string>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/schedule.hpp"

namespace gpt2 {

// One row per sweep over the stages, forward or backward, at most `width` characters wide; very
// long schedules are cut, with a line that says so.
std::string picture(const memfit::checkpoint::chain& stages,
                    const memfit::checkpoint::schedule& plan, int width);

// One row per forward or backward of a stage, and the bytes in use beside it.
std::string svg(const memfit::checkpoint::chain& stages, const memfit::checkpoint::schedule& plan);

}  // namespace gpt2
