// What files of states are made of: parts, each of which lists, writes, checks and takes its own.
// Used by save_state and load_state; derive from state_part to add something of your own to a file.
#pragma once

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

}  // namespace detail

}  // namespace memfit
