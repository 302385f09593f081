// Checks of what a caller hands in; each throws before anything has been changed.
// Used by the top-level functions, which name themselves as `call`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "memfit/core/error.hpp"
#include "memfit/core/tensor.hpp"

namespace memfit::detail {

/// "tensor 'wte'", or "tensor" where it has no name.
inline std::string called(std::string_view name) {
  return name.empty() ? std::string("tensor") : "tensor '" + std::string(name) + "'";
}

[[noreturn]] inline void refuse(std::string_view call, std::string_view name,
                                std::string const& why) {
  throw argument_error("memfit::" + std::string(call) + ": " + called(name) + ": " + why);
}

/// "tensor 'wte' of 100 elements", and how many more there are.
inline std::string called(std::string_view first, std::int64_t elements, std::int64_t tensors) {
  if (tensors == 0) return "no tensors yet";
  auto const text = called(first) + " of " + std::to_string(elements) + " elements";
  return tensors < 2 ? text : text + " and " + std::to_string(tensors - 1) + " more tensors";
}

/// Calls work; what a device or its memory refuses is said again with the call and the tensors.
template <class Work>
void naming(std::string_view call, std::string_view first, std::int64_t elements,
            std::int64_t tensors, Work const& work) {
  auto const where = [&](error const& e) {
    return "memfit::" + std::string(call) + ": " + called(first, elements, tensors) + ": " +
           e.what();
  };
  try {
    work();
  } catch (memory_error const& e) {
    throw memory_error(where(e));
  } catch (device_error const& e) {
    throw device_error(where(e));
  }
}

/// A count below zero, or elements without data.
template <class View>
void require_data(std::string_view call, std::string_view what, std::string_view name,
                  View const& t) {
  if (t.count < 0)
    refuse(call, name, std::string(what) + " has " + std::to_string(t.count) + " elements");
  if (t.count > INT64_MAX / 64)
    refuse(
        call, name,
        std::string(what) + " has " + std::to_string(t.count) + " elements, more than any memory");
  if (t.count > 0 && t.data == nullptr)
    refuse(call, name,
           std::string(what) + " has null data and " + std::to_string(t.count) + " elements");
}

/// Another count than expected.
template <class View>
void require_count(std::string_view call, std::string_view what, std::string_view name,
                   View const& t, std::int64_t expected) {
  if (t.count != expected)
    refuse(call, name,
           std::string(what) + " has " + std::to_string(t.count) + " elements, expected " +
               std::to_string(expected));
}

/// The bytes of a tensor, for overlap checks.
struct extent {
  std::uintptr_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
  bool overlaps(extent const& o) const {
    return !empty() && !o.empty() && begin < o.end && o.begin < end;
  }
};

inline extent extent_of(void const* data, std::int64_t count, std::int64_t size) {
  auto const begin = reinterpret_cast<std::uintptr_t>(data);
  return {begin, begin + static_cast<std::uintptr_t>(count) * static_cast<std::uintptr_t>(size)};
}

template <class E>
extent extent_of(tensor_ref<E> const& t) {
  return extent_of(t.data, t.count, static_cast<std::int64_t>(sizeof(E)));
}

template <class A, class B>
void require_disjoint(std::string_view call, std::string_view name, std::string_view what_a,
                      tensor_ref<A> const& a, std::string_view what_b, tensor_ref<B> const& b) {
  if (extent_of(a).overlaps(extent_of(b)))
    refuse(call, name,
           std::string(what_a) + " (" + std::to_string(a.count) + " elements) overlaps " +
               std::string(what_b) + " (" + std::to_string(b.count) + " elements)");
}

/// A gate whose window is over.
template <class Gate>
void require_current(std::string_view call, Gate const& g) {
  if (!g.is_current())
    throw order_error("memfit::" + std::string(call) +
                      ": the gate is of an earlier window: unscale the gradients of this one");
}

}  // namespace memfit::detail
