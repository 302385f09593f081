// Names by pattern: which tensors a line of a policy is about.
// Used by the optimizer, whose groups and exceptions name tensors so.
#pragma once

#include <cstddef>
#include <string_view>

namespace memfit {

/// Whether all of a tensor's name fits a pattern, in which * stands for any run of characters and
/// ? for one; every other character is itself. A tensor without a name fits none.
inline bool matches(std::string_view pattern, std::string_view name) {
  constexpr auto none = std::string_view::npos;
  std::size_t p = 0, n = 0, star = none, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;  // at first it stands for nothing
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != none) {
      p = star + 1;  // the latest star takes one character more
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size() && !name.empty();
}

/// Whether a name fits one of these patterns.
template <class Patterns>
bool matches_any(Patterns const& patterns, std::string_view name) {
  for (auto const& pattern : patterns)
    if (matches(pattern, name)) return true;
  return false;
}

}  // namespace memfit
