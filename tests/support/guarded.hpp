// A buffer between canary bytes, at any offset from alignment, and byte snapshots.
// Used by tests that must see writes outside a tensor, or any write at all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "memfit/core/tensor.hpp"

namespace test {

/// `count` elements of T with 64 canary bytes before and after, `shift` elements past 64-byte
/// alignment.
template <class T>
class guarded {
 public:
  explicit guarded(std::int64_t count, std::int64_t shift = 0)
      : count_(count),
        storage_(static_cast<std::size_t>(count + shift) * sizeof(T) + 3 * margin, canary) {
    auto const address = reinterpret_cast<std::uintptr_t>(storage_.data());
    auto const to_alignment = (margin - address % margin) % margin;
    first_ = to_alignment + margin + static_cast<std::size_t>(shift) * sizeof(T);
    for (std::int64_t i = 0; i < count; ++i) data()[i] = T{};
  }
  template <class U>
  explicit guarded(std::vector<U> const& values, std::int64_t shift = 0)
      : guarded(static_cast<std::int64_t>(values.size()), shift) {
    std::transform(values.begin(), values.end(), data(), [](U x) { return T(x); });
  }

  T* data() { return reinterpret_cast<T*>(storage_.data() + first_); }
  T& operator[](std::int64_t i) { return data()[i]; }
  std::int64_t count() const { return count_; }
  memfit::tensor_ref<T> ref(std::string_view name = {}) { return {data(), count_, name}; }

  bool intact() const {
    auto const is_canary = [](std::uint8_t b) { return b == canary; };
    auto const begin = storage_.begin() + static_cast<std::ptrdiff_t>(first_);
    return std::all_of(storage_.begin(), begin, is_canary) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes()), storage_.end(), is_canary);
  }

  std::vector<std::uint8_t> snapshot() const {
    auto const begin = storage_.begin() + static_cast<std::ptrdiff_t>(first_);
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes())};
  }

 private:
  static constexpr std::size_t margin = 64;
  static constexpr std::uint8_t canary = 0xa5;
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

  std::int64_t count_;
  std::vector<std::uint8_t> storage_;
  std::size_t first_ = 0;
};

/// Appends the bytes of `count` values, to compare bit for bit (NaN equals itself, the zeros
/// differ).
template <class T>
void append_bytes(std::vector<std::uint8_t>& all, T const* values, std::int64_t count) {
  auto const size = all.size(), more = static_cast<std::size_t>(count) * sizeof(T);
  all.resize(size + more);
  if (more > 0) std::memcpy(all.data() + size, values, more);
}

template <class T>
std::vector<std::uint8_t> bytes_of(std::vector<T> const& values) {
  std::vector<std::uint8_t> bytes;
  append_bytes(bytes, values.data(), static_cast<std::int64_t>(values.size()));
  return bytes;
}

}  // namespace test
