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
/// scale name `overflow`, the pattern of the least magnitude that they cannot hold finitely. A
/// codec of fewer bits than `code` has names them `width` (4: two codes to a byte, the first in the
/// low half).
template <class C>
concept codec = requires(std::uint32_t c, float x) {
  typename C::code;
  { C::scaled } -> std::convertible_to<bool>;
  { C::zero } -> std::convertible_to<std::uint32_t>;
  { C::template decode<std::uint32_t>(c) } -> std::same_as<float>;
  { C::template encode<float>(x) } -> std::same_as<std::uint32_t>;
};

/// Bits of a stored code, and a pattern in which they are set.
template <codec C>
MEMFIT_HD constexpr int code_width() {
  if constexpr (requires { C::width; })
    return C::width;
  else
    return 8 * static_cast<int>(sizeof(typename C::code));
}
template <codec C>
inline constexpr std::uint32_t code_bits = 0xffffffffu >> (32 - code_width<C>());

/// How a format stores slots of one range: its codec and its block size. Specialised for scalar
/// types; other formats name a member template `codec<range>` and a member `block`. Two members
/// more are a format's choice: `scale` = bf16 halves the scales, which are then rounded up, and
/// `template <range> static constexpr bool at_random` says where moments are rounded up or down at
/// random, so that their expectation is exact.
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

/// One way to store numbers in blocks: a codec for either range, and a block size, a power of two
/// from 32 to 4096.
template <class Format>
concept block_format = requires {
  requires codec<codec_for<Format, range::any>>;
  requires codec<codec_for<Format, range::non_negative>>;
  requires good_block_size(format_traits<Format, range::any>::block);
  requires(format_traits<Format, range::any>::block ==
           format_traits<Format, range::non_negative>::block);
};

/// A format for each slot of a rule, in the order of its slots: per_slot<bf16, float8> keeps a
/// first moment in bf16 and a second one in float8.
template <block_format... Formats>
struct per_slot {};

namespace detail {

template <class Format, int I>
struct slot_format_of {
  using type = Format;
};
template <class First, class... Rest, int I>
struct slot_format_of<per_slot<First, Rest...>, I> : slot_format_of<per_slot<Rest...>, I - 1> {};
template <class First, class... Rest>
struct slot_format_of<per_slot<First, Rest...>, 0> {
  using type = First;
};

template <class Format>
inline constexpr int formats_in = -1;  // any number
template <class... Formats>
inline constexpr int formats_in<per_slot<Formats...>> = sizeof...(Formats);
template <class Format>
inline constexpr bool is_per_slot = formats_in<Format> >= 0;

}  // namespace detail

/// The format of slot I where a rule's moments have Format.
template <class Format, int I>
using slot_format = typename detail::slot_format_of<Format, I>::type;

/// A way to store all moments of a rule: one format for every slot, or one for each.
template <class Format>
concept format = block_format<Format> || detail::is_per_slot<Format>;

/// A format with another block size: a power of two from 32 to 4096.
template <block_format Format, int Block>
struct blocked : Format {
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
