// What a tensor file says of each tensor: name, element type, shape, place.
// Used by the reader and the writer of tensor files, and by whoever looks into one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memfit/core/types.hpp"

namespace memfit {

/// The element types of the safetensors format.
enum class stored_type {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  f8_e4m3,
  f8_e5m2,
  c64
};

namespace detail {

struct stored_type_row {
  char const* name;
  int bytes;
};
inline constexpr stored_type_row stored_types[] = {
    {"F64", 8},  {"F32", 4},     {"F16", 2},     {"BF16", 2}, {"I64", 8}, {"I32", 4},
    {"I16", 2},  {"I8", 1},      {"U64", 8},     {"U32", 4},  {"U16", 2}, {"U8", 1},
    {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"C64", 8}};

template <class E>
struct stored_element;
template <>
struct stored_element<float> {
  static constexpr auto value = stored_type::f32;
};
template <>
struct stored_element<fp32> : stored_element<float> {};
template <>
struct stored_element<bf16> {
  static constexpr auto value = stored_type::bf16;
};
template <>
struct stored_element<fp16> {
  static constexpr auto value = stored_type::f16;
};
template <>
struct stored_element<std::int64_t> {
  static constexpr auto value = stored_type::i64;
};
template <>
struct stored_element<std::uint64_t> {
  static constexpr auto value = stored_type::u64;
};
template <>
struct stored_element<double> {
  static constexpr auto value = stored_type::f64;
};
template <>
struct stored_element<std::uint32_t> {
  static constexpr auto value = stored_type::u32;
};
template <>
struct stored_element<std::uint16_t> {
  static constexpr auto value = stored_type::u16;
};
template <>
struct stored_element<std::uint8_t> {
  static constexpr auto value = stored_type::u8;
};

}  // namespace detail

/// How elements of type E are stored.
template <class E>
inline constexpr stored_type stored_as = detail::stored_element<std::remove_const_t<E>>::value;

/// "F32", and the bytes of an element.
constexpr char const* text_of(stored_type type) {
  return detail::stored_types[static_cast<int>(type)].name;
}
constexpr std::int64_t bytes_of(stored_type type) {
  return detail::stored_types[static_cast<int>(type)].bytes;
}

/// A tensor in a file; `begin` and `end` count from where the data starts.
struct stored_tensor {
  std::string name;
  stored_type type = stored_type::f32;
  std::vector<std::int64_t> shape = {};
  std::int64_t begin = 0, end = 0;

  std::int64_t bytes() const { return end - begin; }
  std::int64_t count() const { return bytes() / bytes_of(type); }
};

/// What is written beside the tensors, by key.
using stored_words = std::vector<std::pair<std::string, std::string>>;

namespace detail {

/// "F32 [3,4]"
inline std::string text_of(stored_type type, std::vector<std::int64_t> const& shape) {
  std::string text = memfit::text_of(type) + std::string(" [");
  for (auto const extent : shape) {
    if (text.back() != '[') text += ',';
    text += std::to_string(extent);
  }
  return text + "]";
}

/// The bytes of a shape; false where 63 bits do not hold them.
inline bool bytes_of_shape(stored_type type, std::vector<std::int64_t> const& shape,
                           std::int64_t& bytes) {
  bytes = bytes_of(type);
  for (auto const extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return false;
  return true;
}

/// The place of the item of this key in a sorted list, and whether it is there.
template <class List, class KeyOf>
bool find_sorted(List const& list, std::string_view key, KeyOf const& key_of, std::size_t& place) {
  std::size_t low = 0, high = list.size();
  while (low < high) {
    auto const middle = low + (high - low) / 2;
    if (key_of(list[middle]) < key)
      low = middle + 1;
    else
      high = middle;
  }
  place = low;
  return low < list.size() && key_of(list[low]) == key;
}

}  // namespace detail

}  // namespace memfit
