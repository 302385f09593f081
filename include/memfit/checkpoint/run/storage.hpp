// Where a checkpointed pass keeps its buffers, if not in memfit's own arena and host memory.
// Used by the runner; users hand in objects of theirs that take and give, or store and load.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace memfit::checkpoint {

/// An allocator of the user's: `take(bytes)` returns memory of the executor's kind, aligned as the
/// stages need it, or null or throws; `give(data, bytes)` takes it back, in any order, and does not
/// throw. On an asynchronous executor both are ordered on it, as in cudaMallocAsync.
template <class S>
concept storage = requires(S& s, void* data, std::int64_t bytes) {
  { s.take(bytes) } -> std::convertible_to<void*>;
  s.give(data, bytes);
};

/// A second place of the user's for activations: `store(activation, data, bytes)` copies from the
/// executor's memory, over what it held for this activation; `load(activation, data, bytes)` copies
/// that back, once or several times. Ordered on the executor.
template <class P>
concept second_place = requires(P& p, std::int64_t activation, void const* from, void* to,
                                std::int64_t bytes) {
  p.store(activation, from, bytes);
  p.load(activation, to, bytes);
};

/// Refers to a user's storage, which must outlive it; or to none.
class storage_ref {
 public:
  storage_ref() = default;
  template <class S>
  requires(!std::same_as<std::remove_const_t<S>, storage_ref>) storage_ref(S& s)
      : object_(&s),
        take_([](void* o, std::int64_t bytes) -> void* { return static_cast<S*>(o)->take(bytes); }),
        give_([](void* o, void* data, std::int64_t bytes) noexcept {
          static_cast<S*>(o)->give(data, bytes);
        }) {
    static_assert(storage<S>,
                  "memfit::checkpointed: a storage needs take(std::int64_t bytes) and "
                  "give(void* data, std::int64_t bytes)");
  }

  explicit operator bool() const { return object_ != nullptr; }
  void* take(std::int64_t bytes) const { return take_(object_, bytes); }
  void give(void* data, std::int64_t bytes) const noexcept { give_(object_, data, bytes); }

 private:
  void* object_ = nullptr;
  void* (*take_)(void*, std::int64_t) = nullptr;
  void (*give_)(void*, void*, std::int64_t) noexcept = nullptr;
};

/// Refers to a user's second place, which must outlive it; or to none.
class second_place_ref {
 public:
  second_place_ref() = default;
  template <class P>
  requires(!std::same_as<std::remove_const_t<P>, second_place_ref>) second_place_ref(P& p)
      : object_(&p),
        store_([](void* o, std::int64_t activation, void const* from, std::int64_t bytes) {
          static_cast<P*>(o)->store(activation, from, bytes);
        }),
        load_([](void* o, std::int64_t activation, void* to, std::int64_t bytes) {
          static_cast<P*>(o)->load(activation, to, bytes);
        }) {
    static_assert(second_place<P>,
                  "memfit::checkpointed: a second place needs store(std::int64_t activation, void "
                  "const* from, std::int64_t bytes) and load(std::int64_t activation, void* to, "
                  "std::int64_t bytes)");
  }

  explicit operator bool() const { return object_ != nullptr; }
  void store(std::int64_t activation, void const* from, std::int64_t bytes) const {
    store_(object_, activation, from, bytes);
  }
  void load(std::int64_t activation, void* to, std::int64_t bytes) const {
    load_(object_, activation, to, bytes);
  }

 private:
  void* object_ = nullptr;
  void (*store_)(void*, std::int64_t, void const*, std::int64_t) = nullptr;
  void (*load_)(void*, std::int64_t, void*, std::int64_t) = nullptr;
};

}  // namespace memfit::checkpoint
