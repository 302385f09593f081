// printf into a string. Used by gpt2_train and memfit_fit for lines that people read.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace shared {

// At most 127 characters.
template <class... Values>
std::string text(const char* format, Values... values) {
  std::array<char, 128> line{};
  std::snprintf(line.data(), line.size(), format, values...);
  return line.data();
}

}  // namespace shared
