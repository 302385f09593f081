// The progress of a run for a person: one line that renews itself on a terminal, plain lines
// elsewhere. Used by the trainer of the GPT-2 example.
#pragma once

#include <chrono>

#include "../shared/bytes.hpp"
#include "../shared/terminal.hpp"
#include "report.hpp"

namespace gpt2 {

class progress {
 public:
  // Looks whether standard output is a terminal.
  progress();
  // Elsewhere than on a terminal: the first and the last step, validations, and at most one other
  // line per second.
  void show(const report& r);
  // Leaves the renewed line behind before other text follows.
  void end();

 private:
  bool terminal_;
  bool open_ = false;
  std::chrono::steady_clock::time_point next_line_{};
};

using shared::readable_bytes;
using shared::terminal_columns;

}  // namespace gpt2
