// Memory and small programs of one executor behind a virtual face, so that a manager's type does
// not name it. Used by managers such as the optimizer and the loss scaler, which pick it when made.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "memfit/exec/concept.hpp"

namespace memfit::detail {

/// What a gate that a manager makes points to, in the executor's memory.
struct gate_numbers {
  float multiplier;
  std::uint32_t skip;
};

/// Memory of one executor, and Programs, each of which it can run once in its order: function
/// objects without arguments or result that read and write a few numbers in that memory.
template <class... Programs>
class machine;

template <>
class machine<> {
 public:
  virtual ~machine() = default;
  virtual buffer allocate(std::int64_t bytes, memory_use use) const = 0;
  virtual void copy_from_host(void* to, void const* from, std::int64_t bytes) const = 0;
  virtual void copy_to_host(void* to, void const* from, std::int64_t bytes) const = 0;
  virtual void fill(void* to, unsigned char value, std::int64_t bytes) const = 0;

  /// A buffer of zeros.
  buffer zeroed(std::int64_t bytes, memory_use use = memory_use::other) const {
    buffer b = allocate(bytes, use);
    fill(b.data(), 0, bytes);
    return b;
  }
  void run() const {}
};

template <class Program, class... Rest>
class machine<Program, Rest...> : public machine<Rest...> {
 public:
  using machine<Rest...>::run;
  virtual void run(Program const& program) const = 0;
};

/// Face, which derives from machine<Programs...>, on an executor.
template <class E, class Face, class... Programs>
class machine_on;

template <class E, class Face>
class machine_on<E, Face> : public Face {
 public:
  explicit machine_on(E exec) : exec_(std::move(exec)) {}
  buffer allocate(std::int64_t bytes, memory_use use) const override {
    return detail::allocate(exec_, bytes, use);
  }
  void copy_from_host(void* to, void const* from, std::int64_t bytes) const override {
    exec_.copy_from_host(to, from, bytes);
  }
  void copy_to_host(void* to, void const* from, std::int64_t bytes) const override {
    exec_.copy_to_host(to, from, bytes);
  }
  void fill(void* to, unsigned char value, std::int64_t bytes) const override {
    exec_.fill(to, value, bytes);
  }

 protected:
  E exec_;
};

template <class E, class Face, class Program, class... Rest>
class machine_on<E, Face, Program, Rest...> : public machine_on<E, Face, Rest...> {
 public:
  using machine_on<E, Face, Rest...>::machine_on;
  using machine_on<E, Face, Rest...>::run;
  void run(Program const& program) const override { this->exec_.once(program); }
};

/// An executor, as a manager's constructor takes it alone: not the manager itself, to be copied.
template <class E, class Manager>
concept executor_for = !std::same_as<E, Manager> && executor<E>;

/// These programs on an executor, and nothing else.
template <class... Programs, class E>
machine<Programs...>* new_machine(E const& exec) {
  return new machine_on<E, machine<Programs...>, Programs...>(exec);
}

}  // namespace memfit::detail
