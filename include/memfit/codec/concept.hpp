// What a codec and a format are, and how a slot's range picks a codec from a format.
// Used by every codec, by the drivers, and by users who write a format of their own.
#pragma once

#include <concepts>
#include <cstdint>

#include "memfit/core/config.hpp"
#include "memfit/core/lanes.hpp"
#include "memfit/core/slot.hpp"

namespace memfit {

/// One value to one code and back, without memory: static templates on the value type.
///
/// `code` is the stored type, `scaled` says whether values are relative to the largest magnitude of
/// their block (then |x| <= 1), `zero` is the code of 0. `encode(x)` gives the nearest code in the
/// low bits of a 32-bit pattern (for lanes, bits above the code may be anything), `decode(c)` its
/// value. Codes of non-negative codecs order as their values do, from 0. Signed codes order as
/// magnitudes do: below a sign bit where `zero` is 0, else on either side of `zero`. Codecs without
/// scale name `overflow`, the pattern of the least magnitude that they cannot hold finitely.
template <class C>
concept codec = requires(std::uint32_t c, float x) {
  typename C::code;
  { C::scaled } -> std::convertible_to<bool>;
  { C::zero } -> std::convertible_to<std::uint32_t>;
  { C::template decode<std::uint32_t>(c) } -> std::same_as<float>;
  { C::template encode<float>(x) } -> std::same_as<std::uint32_t>;
};

/// The codec and block size of a format for slots of one range. Specialised for scalar types; other
/// formats name a member template `codec<range>` and a member `block`.
template <class Format, range R>
struct format_traits;

// clang-format off
template <class Format, range R>
  requires requires { typename Format::template codec<R>; Format::block; }
struct format_traits<Format, R> {
  // clang-format on
  using codec = typename Format::template codec<R>;
  static constexpr int block = Format::block;
};

template <class Format, range R>
using codec_for = typename format_traits<Format, R>::codec;

/// Whether a block of this size fills whole vectors and little stack.
constexpr bool good_block_size(int block) {
  return block >= 32 && block <= 4096 && (block & (block - 1)) == 0;
}

/// A way to store moments: a codec for either range, and one block size, a power of two from 32 to
/// 4096.
template <class Format>
concept format = requires {
  requires codec<codec_for<Format, range::any>>;
  requires codec<codec_for<Format, range::non_negative>>;
  requires good_block_size(format_traits<Format, range::any>::block);
  requires(format_traits<Format, range::any>::block ==
           format_traits<Format, range::non_negative>::block);
};

/// A format with another block size: a power of two from 32 to 4096.
template <class Format, int Block>
struct blocked {
  static_assert(good_block_size(Block),
                "memfit::blocked: the block size is a power of two from 32 to 4096");
  template <range R>
  using codec = codec_for<Format, R>;
  static constexpr int block = Block;
};

/// Number of codes that a one-byte codec can have.
inline constexpr int byte_codes = 256;

/// The block size of the 8-bit formats unless `blocked` says otherwise.
inline constexpr int default_block = 256;

/// Number of blocks that n elements fill, the last one perhaps in part.
MEMFIT_HD constexpr std::int64_t block_count(std::int64_t n, std::int64_t block) {
  return n / block + (n % block != 0 ? 1 : 0);
}

}  // namespace memfit
