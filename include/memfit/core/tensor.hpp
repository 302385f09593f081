// What memfit sees of a tensor: a pointer, a count and a name; and the trait that shows it.
// Used by every function that takes tensors; users specialise tensor_traits for their own type.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/core/error.hpp"
#include "memfit/core/types.hpp"

namespace memfit {

/// The product of extents; throws argument_error where one is negative or 64 bits do not hold it.
inline std::int64_t element_count(std::initializer_list<std::int64_t> extents,
                                  std::string_view name = {}) {
  std::int64_t count = 1;
  for (auto extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      throw argument_error("memfit::tensor_ref: tensor '" + std::string(name) +
                           "': extents are negative or their product exceeds 64 bits");
  }
  return count;
}

/// A view of `count` contiguous elements; owns nothing. The name is for messages and look-ups.
template <class E>
struct tensor_ref {
  using element = E;
  E* data = nullptr;
  std::int64_t count = 0;
  std::string_view name = {};

  tensor_ref() = default;
  tensor_ref(E* first, std::int64_t n, std::string_view called = {})
      : data(first), count(n), name(called) {}
  /// From a shape: the count is the product of all extents.
  tensor_ref(E* first, std::initializer_list<std::int64_t> extents, std::string_view called = {})
      : data(first), count(element_count(extents, called)), name(called) {}
  /// A view of mutable elements is a view of constant ones.
  template <class M>
  requires(std::same_as<M const, E>) tensor_ref(tensor_ref<M> const& other)
      : data(other.data), count(other.count), name(other.name) {}
};

/// Shows a tensor type to memfit: `static tensor_ref<E> ref(T&)`, E being float or a memfit type.
template <class T>
struct tensor_traits;

template <class E>
struct tensor_traits<tensor_ref<E>> {
  static tensor_ref<E> ref(tensor_ref<E> const& t) { return t; }
};

template <class E>
struct tensor_traits<std::vector<E>> {
  static tensor_ref<E> ref(std::vector<E>& t) {
    return {t.data(), static_cast<std::int64_t>(t.size())};
  }
  static tensor_ref<E const> ref(std::vector<E> const& t) {
    return {t.data(), static_cast<std::int64_t>(t.size())};
  }
};

template <class E>
struct tensor_traits<std::span<E>> {
  static tensor_ref<E> ref(std::span<E> const& t) {
    return {t.data(), static_cast<std::int64_t>(t.size())};
  }
};

/// A type that memfit can see through: tensor_traits is specialised for it.
template <class T>
concept tensor = requires(std::remove_reference_t<T>& t) {
  tensor_traits<std::remove_cvref_t<T>>::ref(t).data;
};

namespace detail {

template <class R>
using begin_of = decltype(*std::begin(std::declval<std::remove_reference_t<R>&>()));

}  // namespace detail

/// A range of them.
template <class R>
concept tensors = tensor<detail::begin_of<R>> && requires(std::remove_reference_t<R>& r) {
  std::end(r);
};

/// The view of a user's tensor.
template <tensor T>
auto ref(T& t) {
  return tensor_traits<std::remove_cvref_t<T>>::ref(t);
}

/// The element type of a user's tensor, without const.
template <tensor T>
using element_of = std::remove_const_t<typename decltype(ref(
    std::declval<std::remove_reference_t<T>&>()))::element>;

}  // namespace memfit
