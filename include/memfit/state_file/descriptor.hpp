// An open file of the system, read and written at any place, and what the system says of it.
// Used by the reader and the writer of tensor files.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "memfit/core/error.hpp"

namespace memfit::detail {

/// Throws what errno says.
[[noreturn]] inline void fail_with_errno(std::string const& where, char const* what) {
  int const number = errno;
  throw file_error(where + ": " + what + ": " + std::strerror(number));
}

/// Closes itself; movable, not copyable.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

  /// What the system says of it; false with errno set.
  bool look(struct stat& into) const { return ::fstat(number_, &into) == 0; }

  /// Fills `to`; false where the system refuses (errno) or the file ends before (errno 0).
  bool read(std::int64_t place, void* to, std::int64_t bytes) const {
    return all(static_cast<char*>(to), place, bytes,
               [this](char* p, std::size_t n, off_t at) { return ::pread(number_, p, n, at); });
  }
  bool write(std::int64_t place, void const* from, std::int64_t bytes) const {
    return all(
        static_cast<char const*>(from), place, bytes,
        [this](char const* p, std::size_t n, off_t at) { return ::pwrite(number_, p, n, at); });
  }
  bool sync() const { return ::fsync(number_) == 0; }
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  template <class Char, class Move>
  static bool all(Char* p, std::int64_t place, std::int64_t bytes, Move const& move) {
    constexpr std::int64_t at_once = std::int64_t{1} << 30;
    while (bytes > 0) {
      errno = 0;
      auto const n = move(p, static_cast<std::size_t>(bytes < at_once ? bytes : at_once),
                          static_cast<off_t>(place));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      p += n;
      place += n;
      bytes -= n;
    }
    return true;
  }

  int number_ = -1;
};

}  // namespace memfit::detail
