// Names of rules, formats and parameter columns as text, spelled as in C++.
// Used by the registry and by state files; users name their own types the same way.
#pragma once

#include <concepts>
#include <string>

#include "memfit/codec/column.hpp"

namespace memfit {

/// The text that stands for a type: of a type with a member `static constexpr char const* name`,
/// that; of others, what a specialization's `static std::string value()` returns.
template <class T>
struct name_of {
  static std::string value() requires requires { std::string(T::name); }
  { return T::name; }
};

template <class T>
concept named = requires {
  { name_of<T>::value() } -> std::same_as<std::string>;
};

template <>
struct name_of<fp32> {
  static std::string value() { return "fp32"; }
};
template <>
struct name_of<bf16> {
  static std::string value() { return "bf16"; }
};
template <>
struct name_of<fp16> {
  static std::string value() { return "fp16"; }
};
template <class Format, int Block>
struct name_of<blocked<Format, Block>> {
  static std::string value() {
    return "blocked<" + name_of<Format>::value() + ", " + std::to_string(Block) + ">";
  }
};
template <class Scalar>
struct name_of<stochastic<Scalar>> {
  static std::string value() { return "stochastic<" + name_of<Scalar>::value() + ">"; }
};
template <class Scalar>
struct name_of<split<Scalar>> {
  static std::string value() { return "split<" + name_of<Scalar>::value() + ">"; }
};
template <class Scalar>
struct name_of<corrected<Scalar>> {
  static std::string value() { return "corrected<" + name_of<Scalar>::value() + ">"; }
};
template <class First, class... Rest>
struct name_of<per_slot<First, Rest...>> {
  static std::string value() {
    return "per_slot<" + (name_of<First>::value() + ... + (", " + name_of<Rest>::value())) + ">";
  }
};
template <class Scalar>
struct name_of<master<Scalar>> {
  static std::string value() { return "master<" + name_of<Scalar>::value() + ">"; }
};

}  // namespace memfit
