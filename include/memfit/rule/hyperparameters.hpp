// Hyper-parameters by name: what a rule lists so that its numbers can be chosen, changed and saved
// at run time. Used by rules to list theirs, by the registry and by state files.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "memfit/core/error.hpp"

namespace memfit {

/// A hyper-parameter of one rule object, by name: a number of any arithmetic type, seen as a
/// double. Points into the rule, which must outlive it.
class hyperparameter {
 public:
  hyperparameter() = default;
  template <class T>
  hyperparameter(char const* name, T& value)
      : name_(name), place_(&value), get_(&read<T>), set_(&write<T>) {
    static_assert(std::is_arithmetic_v<T> && !std::is_const_v<T>,
                  "memfit::hyperparameter: a hyper-parameter is a number or a bool");
  }

  std::string_view name() const { return name_; }
  double get() const { return get_(place_); }
  /// False, and nothing is changed, where the type has no such number: 1.5 steps, a flag of 2.
  [[nodiscard]] bool set(double x) const { return set_(place_, x); }

 private:
  template <class T>
  static double read(void const* place) {
    return static_cast<double>(*static_cast<T const*>(place));
  }
  template <class T>
  static bool write(void* place, double x) {
    if constexpr (!std::is_floating_point_v<T>)
      if (!holds<T>(x)) return false;
    *static_cast<T*>(place) = static_cast<T>(x);
    return true;
  }
  /// Integers up to 2^53, so that a double tells them apart.
  template <class T>
  static bool holds(double x) {
    constexpr int digits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T) - std::is_signed_v<T>;
    constexpr double end = static_cast<double>(1ull << (digits < 53 ? digits : 53));
    if (!(x < end && x >= (std::is_signed_v<T> ? -end : 0.0))) return false;
    return static_cast<double>(static_cast<long long>(x)) == x;
  }

  char const* name_ = "";
  void* place_ = nullptr;
  double (*get_)(void const*) = nullptr;
  bool (*set_)(void*, double) = nullptr;
};

/// What a rule's `hyperparameters()` returns: `return {{"lr", lr}, {"beta", beta}};`
class hyperparameter_list {
 public:
  static constexpr std::size_t most = 32;

  /// Throws argument_error beyond `most`.
  hyperparameter_list(std::initializer_list<hyperparameter> list) : size_(list.size()) {
    if (size_ > most)
      throw argument_error("memfit::hyperparameter_list: " + std::to_string(size_) +
                           " hyper-parameters, at most " + std::to_string(most));
    std::size_t i = 0;
    for (auto const& h : list) items_[i++] = h;
  }

  hyperparameter const* begin() const { return items_; }
  hyperparameter const* end() const { return begin() + size_; }
  std::size_t size() const { return size_; }
  /// Null where there is none of this name.
  hyperparameter const* find(std::string_view name) const {
    for (auto const& h : *this)
      if (h.name() == name) return &h;
    return nullptr;
  }

 private:
  std::size_t size_;
  hyperparameter items_[most];
};

/// A rule that says what its hyper-parameters are called.
template <class Rule>
concept lists_hyperparameters = requires(Rule& r) {
  { r.hyperparameters() } -> std::same_as<hyperparameter_list>;
};

/// Calls visit(name, value as a double) for each hyper-parameter of a rule that lists them.
template <lists_hyperparameters Rule, class Visit>
void for_each_hyperparameter(Rule r, Visit const& visit) {
  for (auto const& h : r.hyperparameters()) visit(h.name(), h.get());
}

}  // namespace memfit
