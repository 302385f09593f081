// Rows of a tensor in the type of arithmetic: where they are stored in it, the rows themselves;
// else copies. Used by the kernels of the GPT-2 example on the host, so that each is written once.
#pragma once

#include <algorithm>

#include "host_convert.hpp"

namespace gpt2 {

// Room for the copies of one thread; a copy of this object takes the same room again.
template <class T>
class row_space {
 public:
  explicit row_space(float*) {}
  const T* read(index, const T* from) { return from; }
  // What is changed goes back by `store`.
  T* change(index, T* from) { return from; }
  // For values that are all to be written and go to `to` by `store`.
  T* make(index, T* to) { return to; }
  void store(index, const T*, T*) {}
};

template <narrow T>
class row_space<T> {
 public:
  explicit row_space(float* free) : free_{free} {}

  const float* read(index count, const T* from) { return change(count, from); }
  float* change(index count, const T* from) {
    float* const copy = make(count, nullptr);
    widen(count, from, copy);
    return copy;
  }
  float* make(index count, T*) {
    float* const room = free_;
    free_ += padded(count);
    return room;
  }
  void store(index count, const float* from, T* to) { narrow_to(count, from, to); }

  // Rows begin at cache lines.
  static index padded(index count) { return (count + 15) / 16 * 16; }

 private:
  float* free_;
};

// The room of all threads, as large as the largest rows asked for.
template <class T>
class row_spaces {
 public:
  explicit row_spaces(memory&) {}
  void reserve(int, index) {}
  row_space<T> of(int) { return row_space<T>{nullptr}; }
};

template <narrow T>
class row_spaces<T> {
 public:
  // As many as any kernel has of one thread's rows at a time.
  static constexpr index rows = 4;

  explicit row_spaces(memory& in) : memory_{in} {}
  void reserve(int threads, index columns) {
    each_ = std::max(each_, rows * row_space<T>::padded(columns));
    index const needed = threads * each_;
    if (needed <= all_.size()) return;
    all_ = {};
    all_ = tensor<float>{"rows", {needed}, memory_};
  }
  row_space<T> of(int thread) { return row_space<T>{all_.data() + thread * each_}; }

 private:
  memory& memory_;
  index each_ = 0;
  tensor<float> all_;
};

}  // namespace gpt2
