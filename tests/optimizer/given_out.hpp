// Bytes that memfit::host has given out in this program. Used by the table, to compare with what
// optimizers say they hold.
#pragma once

#include <cstdint>

namespace test {

/// Counted in the operator new that memfit::host alone calls, over the time of the program.
std::int64_t memory_given_out();

}  // namespace test
