// A block of memory that frees itself through whoever allocated it.
// Used by executors, which make buffers, and by managers, which own them.
#pragma once

#include <cstdint>
#include <utility>

namespace memfit {

/// What a manager allocates memory for; executors that count or place memory by it say so in their
/// `allocate`.
enum class memory_use {
  other,       ///< counters, norms, lists
  kept,        ///< beside parameters, by the parameter column
  moments,     ///< codes
  scales,      ///< of the blocks of moments
  sums,        ///< of the gradients of micro-batches
  activations  ///< the arena of checkpointed
};

/// Owns `bytes` of memory on some device; movable, not copyable. Freed by `release(data, bytes)`.
class buffer {
 public:
  using release_function = void (*)(void* data, std::int64_t bytes) noexcept;

  buffer() = default;
  buffer(void* data, std::int64_t bytes, release_function release)
      : data_(data), bytes_(bytes), release_(release) {}
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~buffer() {
    if (release_ != nullptr) release_(data_, bytes_);
  }

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  void swap(buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  release_function release_ = nullptr;
};

}  // namespace memfit
