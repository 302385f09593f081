// How wide the terminal is. Used by gpt2_train and memfit_fit for what they draw.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>

namespace shared {

// Columns of standard output, where that is a terminal.
inline std::optional<int> terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

}  // namespace shared
