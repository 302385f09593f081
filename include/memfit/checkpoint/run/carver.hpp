// Cuts typed arrays out of a piece of storage; without storage, counts what they take.
// Used by the stages of a checkpointed model, in the passes and when their chain is made.
#pragma once

#include <cstdint>
#include <string>

#include "memfit/checkpoint/plan/rounded.hpp"
#include "memfit/core/error.hpp"

namespace memfit::checkpoint {

/// Takes arrays from the front of a piece of storage. The same calls take the same places: a layout
/// written once as calls of `take` counts the bytes for the chain and finds the arrays in every
/// pass. Owns nothing and touches no storage, so it works for memory of any device. Not copyable:
/// whoever made it sees all that was taken.
class carver {
 public:
  /// Without storage: every `take` returns null, `bytes` counts.
  carver() = default;
  /// Over `bytes` at `data`, which a plan gave to `stage` as its `purpose`; both are for messages.
  carver(void* data, std::int64_t bytes, char const* purpose, std::int64_t stage)
      : data_(static_cast<char*>(data)), planned_(bytes), purpose_(purpose), stage_(stage) {}
  carver(carver const&) = delete;
  carver& operator=(carver const&) = delete;

  /// `count` uninitialized elements of T. Throws argument_error where fewer bytes were planned, and
  /// for a count that is negative or that 64 bits do not hold in bytes; then nothing is taken.
  template <class T>
  T* take(std::int64_t count) {
    static_assert(alignof(T) <= 64, "memfit::checkpoint::carver: storage is aligned to 64 bytes");
    return static_cast<T*>(take_bytes(count, static_cast<std::int64_t>(sizeof(T))));
  }

  /// Bytes taken so far, as a multiple of the alignment: what a chain should name.
  std::int64_t bytes() const { return rounded(end_); }
  bool counts_only() const { return planned_ < 0; }
  /// What would have been taken, had the last call that was refused been granted; else 0.
  std::int64_t refused_bytes() const { return refused_; }

 private:
  void* take_bytes(std::int64_t count, std::int64_t size) {
    std::int64_t more = 0, end = 0;
    auto const begin = rounded(end_);
    if (count < 0 || __builtin_mul_overflow(count, size, &more) ||
        __builtin_add_overflow(begin, more, &end) || end > INT64_MAX - alignment)
      refuse(count, size, "which no memory holds");
    if (!counts_only() && end > planned_) {
      refused_ = rounded(end);
      refuse(count, size,
             "after " + std::to_string(begin) + " bytes, but " + std::to_string(planned_) +
                 " bytes were planned");
    }
    end_ = end;
    return data_ != nullptr ? data_ + begin : nullptr;
  }

  [[noreturn]] void refuse(std::int64_t count, std::int64_t size, std::string const& why) const {
    auto const where = stage_ < 0 ? "" : "stage " + std::to_string(stage_) + ": ";
    throw argument_error("memfit::checkpoint::carver::take: " + where + purpose_ + ": asked for " +
                         std::to_string(count) + " elements of " + std::to_string(size) +
                         " bytes, " + why);
  }

  char* data_ = nullptr;
  std::int64_t planned_ = -1;
  std::int64_t end_ = 0, refused_ = 0;
  char const* purpose_ = "counting";
  std::int64_t stage_ = -1;
};

}  // namespace memfit::checkpoint
