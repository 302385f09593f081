// The reference table and block size that belong to a format of memfit.
// Used by tests that are typed by format and range.
#pragma once

#include <type_traits>

#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/small_float.hpp"
#include "support/reference_code.hpp"

namespace reference {

/// A format without its block size, and the block size (256 unless the type says otherwise).
template <class Format>
struct format_of {
  using base = Format;
  static constexpr int block = 256;
};
template <class Format, int Block>
struct format_of<memfit::blocked<Format, Block>> {
  using base = Format;
  static constexpr int block = Block;
};

template <class Format>
inline constexpr bool is_coded =
    std::is_same_v<typename format_of<Format>::base, memfit::dynamic8> ||
    std::is_same_v<typename format_of<Format>::base, memfit::linear8> ||
    std::is_same_v<typename format_of<Format>::base, memfit::float8>;

template <class Format>
table table_of(memfit::range range) {
  using base = typename format_of<Format>::base;
  bool const is_signed = range == memfit::range::any;
  if constexpr (std::is_same_v<base, memfit::dynamic8>) {
    return dynamic8(is_signed);
  } else if constexpr (std::is_same_v<base, memfit::linear8>) {
    return linear8(is_signed);
  } else {
    static_assert(std::is_same_v<base, memfit::float8>);
    return float8(is_signed);
  }
}

}  // namespace reference
