// Text of JSON, strictly: a scanner for the few kinds of value that a header of tensors has, and
// quoting. Used by the reader and the writer of tensor files.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "memfit/core/error.hpp"

namespace memfit::detail {

/// Bytes that continue a UTF-8 sequence after this first byte, or -1.
inline int utf8_tail(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xc2 && first <= 0xdf) return 1;
  if (first >= 0xe0 && first <= 0xef) return 2;
  return first >= 0xf0 && first <= 0xf4 ? 3 : -1;
}

/// Whether this is UTF-8, without overlong forms, surrogates and what lies beyond U+10FFFF.
inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    auto const first = static_cast<unsigned char>(text[i]);
    int const tail = utf8_tail(first);
    if (tail < 0 || static_cast<std::size_t>(tail) >= text.size() - i) return false;
    for (int k = 1; k <= tail; ++k) {
      auto const next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      unsigned const least = k > 1 ? 0x80u : first == 0xe0 ? 0xa0u : first == 0xf0 ? 0x90u : 0x80u;
      unsigned const most = k > 1 ? 0xbfu : first == 0xed ? 0x9fu : first == 0xf4 ? 0x8fu : 0xbfu;
      if (next < least || next > most) return false;
    }
    i += static_cast<std::size_t>(tail) + 1;
  }
  return true;
}

/// Appends a code point below U+110000 that is no surrogate.
inline void append_utf8(std::string& to, std::uint32_t point) {
  auto const put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3f));
    }
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

/// A JSON string of UTF-8 text.
inline std::string quoted(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// A name or text out of a file, as a message shows it: not too long, on one line, in ASCII.
inline std::string shown(std::string_view text) {
  constexpr std::size_t most = 100;
  std::string out = "'";
  for (char const c : text.substr(0, most)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > most ? "...'" : "'");
}

/// A number as text, which reads back as the same number, whatever the locale.
template <class N>
std::string text_of_number(N value) {
  char text[32];
  auto const end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}
template <class N>
bool parse_number(std::string_view text, N& value) {
  auto const* const end = text.data() + text.size();
  auto const read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

/// Reads a text of JSON from front to back; throws file_error, which `where` begins, at whatever is
/// not the thing asked for.
class json_scanner {
 public:
  json_scanner(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  [[noreturn]] void fail(std::string const& why) const {
    throw file_error(std::string(where_) + ": header, byte " + std::to_string(at_) + ": " + why);
  }

  /// Whether this character, blanks before it, comes next; then it is passed.
  bool pass(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!pass(c)) fail(std::string("expected '") + c + "'");
  }
  void expect_end() {
    skip_blanks();
    if (at_ != text_.size()) fail("text behind the end of the object");
  }

  /// The pairs of an object: calls take(key), which reads the value.
  template <class Take>
  void object(Take const& take) {
    expect('{');
    if (pass('}')) return;
    do {
      auto const key = string();
      expect(':');
      take(key);
    } while (pass(','));
    expect('}');
  }
  /// The items of an array: calls take(), which reads one.
  template <class Take>
  void array(Take const& take) {
    expect('[');
    if (pass(']')) return;
    do take();
    while (pass(','));
    expect(']');
  }

  std::string string() {
    expect('"');
    std::string out;
    for (;;) {
      char const c = next();
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string");
      if (c == '\\')
        append_utf8(out, escaped());
      else
        out += c;
    }
    if (!is_utf8(out)) fail("a string is not UTF-8");
    return out;
  }

  /// An integer from 0 to 2^63 - 1, written with digits alone.
  std::int64_t integer() {
    skip_blanks();
    auto const start = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, std::int64_t{text_[at_] - '0'}, &value))
        fail("an integer beyond 2^63 - 1");
    bool const leading_zero = at_ - start > 1 && text_[start] == '0';
    bool const other =
        at_ < text_.size() && std::string_view(".eE+-").find(text_[at_]) != std::string_view::npos;
    if (at_ == start || leading_zero || other) fail("expected an integer, 0 or more, in digits");
    return value;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  char next() {
    if (at_ == text_.size()) fail("the text ends within a string");
    return text_[at_++];
  }
  std::uint32_t escaped() {
    constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    char const c = next();
    if (auto const i = names.find(c); i != names.npos) return static_cast<unsigned char>(values[i]);
    if (c != 'u') fail("an unknown escape in a string");
    auto const first = hex();
    if (first < 0xd800 || first > 0xdfff) return first;
    if (first > 0xdbff || next() != '\\' || next() != 'u') fail("half a surrogate pair");
    auto const second = hex();
    if (second < 0xdc00 || second > 0xdfff) fail("half a surrogate pair");
    return 0x10000 + ((first & 0x3ff) << 10 | (second & 0x3ff));
  }
  std::uint32_t hex() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      char const c = next();
      auto const digit = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : -1;
      if (digit < 0) fail("expected four hexadecimal digits");
      value = value << 4 | static_cast<std::uint32_t>(digit);
    }
    return value;
  }

  std::string_view text_, where_;
  std::size_t at_ = 0;
};

}  // namespace memfit::detail
