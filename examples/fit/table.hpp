// Bytes of configurations by category: a table, and bars beside what there is.
// Used by memfit_fit's text.
#pragma once

#include <memfit/fit/training.hpp>

#include <string>
#include <vector>

namespace advice {

// A configuration with its heading.
struct column {
  std::string heading;
  memfit::fit::bytes bytes;
  double seconds = 0;
};

// A row per category that any column has, then total and seconds per step.
std::string table(std::vector<column> const& columns);

// A bar per column, at most `width` characters wide, whose full length is `available` bytes; what
// goes beyond is cut, with an arrow. Categories are the letters that the table has before them.
std::string bars(std::vector<column> const& columns, std::int64_t available, int width);

}  // namespace advice
