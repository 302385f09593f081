// Large arrays for benchmarks: huge pages where the system has them, each array on its own page
// offset. Used by the benchmark programs.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace memfit::bench {

/// `bytes` of zeroed memory for the life of the program; equal page offsets would make streams
/// alias.
class array {
 public:
  explicit array(std::size_t bytes) {
    static std::size_t arrays = 0;
    std::size_t const offset = ++arrays * (4096 + 128);
    std::size_t const reserved = bytes + offset + 2 * huge;
    void* const p =
        mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    madvise(p, reserved, MADV_HUGEPAGE);
    auto const start = (reinterpret_cast<std::uintptr_t>(p) + huge - 1) / huge * huge;
    data_ = reinterpret_cast<void*>(start + offset);
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  static constexpr std::size_t huge = std::size_t{2} << 20;
  void* data_ = nullptr;
};

}  // namespace memfit::bench
