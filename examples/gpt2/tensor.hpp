// The trainer's own tensor: a named, zero-initialised array with extents in some memory; move only.
// Used by every part of the GPT-2 example; memfit knows it only through memfit_tensor.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace gpt2 {

// `data` and `[]` reach elements in host memory directly; `write` and `read` copy elements between
// the host and any memory.
template <class T>
class tensor {
 public:
  tensor() = default;

  tensor(std::string name, std::vector<index> extents, memory& in = host_memory())
      : name_{std::move(name)},
        extents_{std::move(extents)},
        size_{size_of(extents_)},
        data_{static_cast<T*>(in.allocate(bytes())), release{&in, true}} {}

  // One whose elements are at `data` already, and stay there when it goes.
  tensor(std::string name, std::vector<index> extents, memory& in, T* data)
      : name_{std::move(name)},
        extents_{std::move(extents)},
        size_{size_of(extents_)},
        data_{data, release{&in, false}} {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<index>& extents() const { return extents_; }
  [[nodiscard]] bool is_matrix() const { return extents_.size() == 2; }
  [[nodiscard]] index size() const { return size_; }
  [[nodiscard]] index bytes() const { return bytes_of(size_); }
  [[nodiscard]] T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }
  T& operator[](index i) { return data_[static_cast<std::size_t>(i)]; }
  const T& operator[](index i) const { return data_[static_cast<std::size_t>(i)]; }

  void write(index first, const T* values, index count) {
    data_.get_deleter().from->copy_from_host(data() + first, values, bytes_of(count));
  }
  void read(index first, T* values, index count) const {
    data_.get_deleter().from->copy_to_host(values, data() + first, bytes_of(count));
  }

 private:
  struct release {
    memory* from = nullptr;
    bool owns = false;
    void operator()(T* p) const {
      if (owns) from->release(p);
    }
  };

  static index size_of(const std::vector<index>& extents) {
    return std::accumulate(extents.begin(), extents.end(), index{1}, std::multiplies<>{});
  }

  static index bytes_of(index count) { return count * static_cast<index>(sizeof(T)); }

  std::string name_;
  std::vector<index> extents_;
  index size_ = 0;
  std::unique_ptr<T[], release> data_;
};

}  // namespace gpt2
