// Bytes as people write and read them: "12GiB", "6.2 GB".
// Used by the command lines and the texts of gpt2_train and memfit_fit.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shared {

struct quantity {
  double number = 0;
  std::string_view unit;
};

// A number without an exponent, and what follows it; empty where there is none.
inline std::optional<quantity> quantity_in(std::string_view text) {
  double number = 0;
  auto const* const end = text.data() + text.size();
  auto const [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{}) return std::nullopt;
  return quantity{number, {rest, static_cast<std::size_t>(end - rest)}};
}

// At least 1 and less than 2^62, rounded down; empty for other numbers and units. Without a unit it
// is bytes.
inline std::optional<std::int64_t> bytes_of(quantity const& q) {
  constexpr std::array<std::pair<std::string_view, double>, 10> units{{{"", 1.0},
                                                                       {"B", 1.0},
                                                                       {"kB", 1e3},
                                                                       {"MB", 1e6},
                                                                       {"GB", 1e9},
                                                                       {"TB", 1e12},
                                                                       {"KiB", 0x1p10},
                                                                       {"MiB", 0x1p20},
                                                                       {"GiB", 0x1p30},
                                                                       {"TiB", 0x1p40}}};
  for (auto const& [unit, factor] : units)
    if (double const bytes = q.number * factor; q.unit == unit && bytes >= 1 && bytes < 0x1p62)
      return static_cast<std::int64_t>(bytes);
  return std::nullopt;
}

inline std::optional<std::int64_t> bytes_in(std::string_view text) {
  auto const found = quantity_in(text);
  return found ? bytes_of(*found) : std::nullopt;
}

// Three digits at most, in powers of 1000.
inline std::string readable_bytes(std::int64_t bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s",
                value, units[unit]);
  return text.data();
}

}  // namespace shared
