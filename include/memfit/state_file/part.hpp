// What files of states are made of: parts, each of which lists, writes, checks and takes its own.
// Used by save_state and load_state; derive from state_part to add something of your own to a file.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memfit/exec/machine.hpp"
#include "memfit/state_file/reader.hpp"
#include "memfit/state_file/writer.hpp"

namespace memfit {

/// One thing's share of a file. Its names and keys must be unlike those of other parts, for which
/// there are prefixes.
class state_part {
 public:
  virtual ~state_part() = default;
  /// Adds its tensors (name, type and shape) and words.
  virtual void list(std::vector<stored_tensor>& tensors, stored_words& words) = 0;
  /// Writes the tensors that it listed, the first of which is number `first` of the file.
  virtual void write(tensor_file_writer& to, std::size_t first) = 0;
  /// Looks at everything that it will take, has ready what that needs, and changes nothing. Throws
  /// file_error where something is missing or is not what it can take.
  virtual void prepare(tensor_file const& from) = 0;
  /// Takes what it has looked at; throws nothing but what the disk or the device do.
  virtual void take(tensor_file const& from) = 0;
};

/// How a part is named in a file, and what it may take from one.
struct part_options {
  /// Begins all its names and keys.
  std::string prefix = {};
  /// Moments of another format, block size or scale type are decoded and coded anew, to nearest.
  /// Without, they are refused.
  bool convert = false;
};

namespace detail {

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

/// The word under this key, which has to be there.
inline std::string const& required_word(tensor_file const& file, std::string const& key) {
  if (auto const* found = file.word(key)) return *found;
  file.refuse(shown(key) + " is not in its __metadata__");
}
/// Refuses a file with another word than this.
inline void require_word(tensor_file const& file, std::string const& key,
                         std::string const& expected) {
  auto const& found = required_word(file, key);
  if (found != expected)
    file.refuse(key + " is " + shown(found) + " in the file, expected " + shown(expected));
}
template <class N>
N required_number(tensor_file const& file, std::string const& key) {
  N value{};
  auto const& text = required_word(file, key);
  if (!parse_number(text, value)) file.refuse(key + " is " + shown(text) + ", expected a number");
  return value;
}

/// Bytes in an executor's memory, and the tensor of a file that holds them.
struct state_column {
  stored_tensor tensor;
  void* data = nullptr;
};

/// Columns that are written and taken as they are, through a small piece of the host's memory.
class column_mover {
 public:
  explicit column_mover(machine<> const& of) : of_(&of) {}

  void write(tensor_file_writer& to, std::size_t index, void const* from) {
    auto const bytes = to.tensors()[index].bytes();
    in_parts(bytes, [&](std::int64_t first, std::int64_t n) {
      of_->copy_to_host(bounce_.data(), static_cast<char const*>(from) + first, n);
      to.write(index, bounce_.data(), n);
    });
  }
  void take(tensor_file const& file, stored_tensor const& from, void* to) {
    in_parts(from.bytes(), [&](std::int64_t first, std::int64_t n) {
      file.read(from, first, bounce_.data(), n);
      of_->copy_from_host(static_cast<char*>(to) + first, bounce_.data(), n);
    });
  }

 private:
  static constexpr std::int64_t at_once = std::int64_t{1} << 20;
  template <class Move>
  static void in_parts(std::int64_t bytes, Move const& move) {
    for (std::int64_t first = 0; first < bytes; first += at_once)
      move(first, bytes - first < at_once ? bytes - first : at_once);
  }

  machine<> const* of_;
  std::vector<char> bounce_ = std::vector<char>(static_cast<std::size_t>(at_once));
};

/// The tensor of this name, of this type and shape.
inline stored_tensor const& required_tensor(tensor_file const& file,
                                            stored_tensor const& expected) {
  auto const& found = file.at(expected.name);
  if (found.type != expected.type || found.shape != expected.shape)
    file.refuse(expected.name, "it is " + text_of(found.type, found.shape) +
                                   " in the file, expected " +
                                   text_of(expected.type, expected.shape));
  return found;
}

}  // namespace detail

}  // namespace memfit
