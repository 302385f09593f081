// The code tables from their definitions (the dynamic map from the golden file) and nearest-entry
// search. Used by the tests of codecs, quantize and optimizer; shares no code with memfit.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace reference {

/// One entry of a code table: the code and the value it stands for.
struct entry {
  std::uint32_t code;
  float value;
};

/// The entries of one format and range, by ascending value. Codes that stand for nothing are left
/// out.
using table = std::vector<entry>;

inline float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

/// 256 values in code order from golden/dynamic8.txt, section "signed" or "unsigned".
inline table dynamic8(bool is_signed) {
  std::ifstream file(MEMFIT_TEST_GOLDEN "/dynamic8.txt");
  if (!file) throw std::runtime_error("golden/dynamic8.txt cannot be read");
  table entries;
  bool wanted = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    if (line == "signed" || line == "unsigned") {
      wanted = (line == "signed") == is_signed;
      continue;
    }
    std::istringstream words(line);
    for (std::uint32_t bits; wanted && words >> std::hex >> bits;)
      entries.push_back({static_cast<std::uint32_t>(entries.size()), from_bits(bits)});
  }
  if (entries.size() != 256) throw std::runtime_error("golden/dynamic8.txt has not 256 entries");
  return entries;
}

/// Equal steps: (c - 127) / 127 for c = 0..254, or c / 255.
inline table linear8(bool is_signed) {
  table entries;
  for (int c = 0; c < (is_signed ? 255 : 256); ++c) {
    double const value = is_signed ? (c - 127) / 127.0 : c / 255.0;
    entries.push_back({static_cast<std::uint32_t>(c), static_cast<float>(value)});
  }
  return entries;
}

/// E4M3 with bias 15 and subnormals and a sign, or UE5M3 with bias 31 whose code 0 is zero; up
/// to 1. The signed zero with the sign bit set is left out.
inline table float8(bool is_signed) {
  table entries{{0, 0.0f}};
  for (std::uint32_t c = 1; c <= (is_signed ? 0x78u : 248u); ++c) {
    int const exponent = static_cast<int>(c >> 3);
    double const eighths = c & 7u;
    double const value = is_signed && exponent == 0
                             ? std::ldexp(eighths / 8, -14)
                             : std::ldexp(1 + eighths / 8, exponent - (is_signed ? 15 : 31));
    entries.push_back({c, static_cast<float>(value)});
    if (is_signed) entries.push_back({c | 0x80u, static_cast<float>(-value)});
  }
  std::sort(entries.begin(), entries.end(),
            [](entry const& a, entry const& b) { return a.value < b.value; });
  return entries;
}

/// n / (254 - |n|) for n = -127..127, or (c / 255)^2.
inline table companded8(bool is_signed) {
  table entries;
  for (int c = 0; c < (is_signed ? 255 : 256); ++c) {
    int const n = c - 127;
    double const value = is_signed ? double(n) / (254 - std::abs(n)) : c * c / 65025.0;
    entries.push_back({static_cast<std::uint32_t>(c), static_cast<float>(value)});
  }
  return entries;
}

/// n |n| / 127^2 for n = -127..127, or the square of the float nearest to (c / 255)^2.
inline table root8(bool is_signed) {
  table entries;
  for (int c = 0; c < (is_signed ? 255 : 256); ++c) {
    int const n = c - 127;
    auto const square = static_cast<float>(is_signed ? n * std::abs(n) / 16129.0 : c * c / 65025.0);
    entries.push_back({static_cast<std::uint32_t>(c),
                       is_signed ? square : static_cast<float>(double{square} * double{square})});
  }
  return entries;
}

/// Twelfths that a float of two exponent bits and one mantissa bit counts, of either sign; or zero
/// and 15 levels of equal ratio from 1/100 to 1.
inline table packed4(bool is_signed) {
  table entries{{is_signed ? 7u : 0u, 0.0f}};
  if (is_signed) {
    std::uint32_t k = 1;
    for (int twelfths : {1, 2, 3, 4, 6, 8, 12}) {
      auto const value = static_cast<float>(twelfths / 12.0);
      entries.push_back({7 + k, value});
      entries.push_back({7 - k++, -value});
    }
  } else {
    for (std::uint32_t c = 1; c < 16; ++c)
      entries.push_back({c, static_cast<float>(std::pow(100, (double(c) - 15) / 14))});
  }
  std::sort(entries.begin(), entries.end(),
            [](entry const& a, entry const& b) { return a.value < b.value; });
  return entries;
}

/// The least bf16 that is not below x, or the largest there is.
inline float bf16_above(float x) {
  auto const bits = std::min(std::bit_cast<std::uint32_t>(x) + 0xffffu, 0x7f7fffffu);
  return from_bits(bits & 0xffff0000u);
}

/// Distance from x to the nearest entry, over all of them; x may be known to be above zero and kept
/// so.
inline double nearest_distance(table const& entries, double x, bool keep_positive = false) {
  double best = INFINITY;
  for (auto const& e : entries)
    if (!(keep_positive && x > 0 && e.value == 0))
      best = std::min(best, std::fabs(x - double{e.value}));
  return best;
}

}  // namespace reference
