// How much memory of the host this process can still take.
// Used by the host device of the GPT-2 example.
#pragma once

#include "memory.hpp"

namespace gpt2 {

// What the system says is available, or less where a control group or a limit of the address space
// leaves less.
index free_host_bytes();

}  // namespace gpt2
