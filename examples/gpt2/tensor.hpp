// The trainer's own tensor: a named, zero-initialised, 64-byte aligned array with extents; move
// only. Used by every part of the GPT-2 example; memfit knows it only through memfit_tensor.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace gpt2 {

using index = std::int64_t;

template <class T>
class tensor {
 public:
  tensor() = default;

  tensor(std::string name, std::vector<index> extents)
      : name_{std::move(name)},
        extents_{std::move(extents)},
        size_{std::accumulate(extents_.begin(), extents_.end(), index{1}, std::multiplies<>{})},
        data_{allocate(bytes())} {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<index>& extents() const { return extents_; }
  [[nodiscard]] bool is_matrix() const { return extents_.size() == 2; }
  [[nodiscard]] index size() const { return size_; }
  [[nodiscard]] index bytes() const { return size_ * static_cast<index>(sizeof(T)); }
  [[nodiscard]] T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }
  T& operator[](index i) { return data_[static_cast<std::size_t>(i)]; }
  const T& operator[](index i) const { return data_[static_cast<std::size_t>(i)]; }

 private:
  struct release {
    void operator()(T* p) const { std::free(p); }
  };

  static T* allocate(index bytes) {
    constexpr std::size_t line = 64;
    std::size_t const rounded = (static_cast<std::size_t>(bytes) + line - 1) / line * line;
    void* const memory = std::aligned_alloc(line, rounded);
    if (memory == nullptr) throw std::bad_alloc{};
    std::memset(memory, 0, rounded);
    return static_cast<T*>(memory);
  }

  std::string name_;
  std::vector<index> extents_;
  index size_ = 0;
  std::unique_ptr<T[], release> data_;
};

}  // namespace gpt2
