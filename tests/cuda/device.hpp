// Device memory for tests, and copies of it; what a test of the CUDA driver holds.
// Used by every test labelled gpu.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

inline void require(cudaError_t error) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("the test's own CUDA call: ") + cudaGetErrorName(error));
}

/// Elements on the device, `offset` elements behind an aligned address, with canaries on both
/// sides.
template <class T>
class on_device {
 public:
  explicit on_device(std::int64_t count, std::int64_t offset = 0) : count_(count), offset_(offset) {
    std::vector<unsigned char> const bytes(total(), canary);
    require(cudaMalloc(reinterpret_cast<void**>(&memory_), bytes.size()));
    require(cudaMemcpy(memory_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }
  explicit on_device(std::vector<T> const& values, std::int64_t offset = 0)
      : on_device(std::ssize(values), offset) {
    set(values);
  }
  on_device(on_device&& other) noexcept
      : count_(other.count_),
        offset_(other.offset_),
        memory_(std::exchange(other.memory_, nullptr)) {}
  on_device& operator=(on_device&&) = delete;
  ~on_device() { cudaFree(memory_); }

  T* data() const { return reinterpret_cast<T*>(memory_ + before()); }
  std::int64_t count() const { return count_; }
  void set(std::span<T const> values) {
    require(cudaMemcpy(data(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice));
  }
  std::vector<T> get() const {
    std::vector<T> values(static_cast<std::size_t>(count_));
    require(cudaMemcpy(values.data(), data(), values.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  bool intact() const {
    std::vector<unsigned char> all(total());
    require(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost));
    auto const end = before() + static_cast<std::size_t>(count_) * sizeof(T);
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((i < before() || i >= end) && all[i] != canary) return false;
    return true;
  }

 private:
  static constexpr std::size_t margin = 256;
  static constexpr unsigned char canary = 0xa5;
  std::size_t before() const { return margin + static_cast<std::size_t>(offset_) * sizeof(T); }
  std::size_t total() const {
    return before() + static_cast<std::size_t>(count_) * sizeof(T) + margin;
  }

  std::int64_t count_, offset_;
  unsigned char* memory_ = nullptr;
};

/// A stream that a test owns.
class stream {
 public:
  stream() { require(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking)); }
  stream(stream const&) = delete;
  stream& operator=(stream const&) = delete;
  ~stream() { cudaStreamDestroy(handle_); }
  operator cudaStream_t() const { return handle_; }
  void wait() const { require(cudaStreamSynchronize(handle_)); }

 private:
  cudaStream_t handle_ = nullptr;
};

}  // namespace test
