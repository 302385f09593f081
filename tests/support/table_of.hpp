// The reference table and block size that belong to a format of memfit.
// Used by tests that are typed by format and range.
#pragma once

#include <type_traits>

#include "memfit/codec/companded.hpp"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/packed4.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/codec/small_float.hpp"
#include "support/reference_code.hpp"

namespace reference {

/// A format without its block size, the block size (256 unless the type says otherwise), and
/// whether scales have 16 bits.
template <class Format>
struct format_of {
  using base = Format;
  static constexpr int block = 256;
  static constexpr bool short_scales = false;
};
template <>
struct format_of<memfit::companded8> {
  using base = memfit::companded8;
  static constexpr int block = 32;
  static constexpr bool short_scales = true;
};
template <>
struct format_of<memfit::root8> {
  using base = memfit::root8;
  static constexpr int block = 128;
  static constexpr bool short_scales = true;
};
template <>
struct format_of<memfit::packed4> {
  using base = memfit::packed4;
  static constexpr int block = 64;
  static constexpr bool short_scales = true;
};
template <class Format, int Block>
struct format_of<memfit::blocked<Format, Block>> {
  using base = Format;
  static constexpr int block = Block;
  static constexpr bool short_scales = format_of<Format>::short_scales;
};

template <class Format, class... Others>
inline constexpr bool is_one_of = (std::is_same_v<Format, Others> || ...);
template <class Format>
inline constexpr bool is_coded =
    is_one_of<typename format_of<Format>::base, memfit::dynamic8, memfit::linear8, memfit::float8,
              memfit::companded8, memfit::root8, memfit::packed4>;

/// Whether moments of this range are rounded at random.
template <class Format>
constexpr bool is_random(memfit::range range) {
  return std::is_same_v<typename format_of<Format>::base, memfit::packed4> &&
         range == memfit::range::non_negative;
}

/// The scale of a block by its largest magnitude.
template <class Format>
float scale_of(float largest) {
  return format_of<Format>::short_scales ? bf16_above(largest) : largest;
}

template <class Format>
table table_of(memfit::range range) {
  using base = typename format_of<Format>::base;
  bool const is_signed = range == memfit::range::any;
  if constexpr (std::is_same_v<base, memfit::dynamic8>) {
    return dynamic8(is_signed);
  } else if constexpr (std::is_same_v<base, memfit::linear8>) {
    return linear8(is_signed);
  } else if constexpr (std::is_same_v<base, memfit::companded8>) {
    return companded8(is_signed);
  } else if constexpr (std::is_same_v<base, memfit::root8>) {
    return root8(is_signed);
  } else if constexpr (std::is_same_v<base, memfit::packed4>) {
    return packed4(is_signed);
  } else {
    static_assert(std::is_same_v<base, memfit::float8>);
    return float8(is_signed);
  }
}

}  // namespace reference
