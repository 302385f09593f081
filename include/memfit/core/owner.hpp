// A pointer that deletes what it points to: std::unique_ptr without <memory>, whose cost every unit
// compiled by nvcc would feel. Used by executors and managers for what they hold by its base class.
#pragma once

#include <type_traits>
#include <utility>

namespace memfit {

/// Owns one object, or none; movable, not copyable.
template <class T>
class owner {
 public:
  owner() = default;
  explicit owner(T* object) : object_(object) {}
  template <class U>
  requires(std::is_convertible_v<U*, T*>) owner(owner<U>&& other)
  noexcept : object_(other.release()) {}
  owner(owner&& other) noexcept : object_(other.release()) {}
  owner& operator=(owner&& other) noexcept {
    owner moved(std::move(other));
    std::swap(object_, moved.object_);
    return *this;
  }
  ~owner() { delete object_; }

  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  T* release() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

}  // namespace memfit
