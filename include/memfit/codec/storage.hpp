// How the numbers of one slot lie in memory: codes, which may share bytes, and scales of blocks.
// Used by the drivers, by the optimizer and by state files, which ask nothing else of a format.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/concept.hpp"
#include "memfit/core/types.hpp"

namespace memfit {

namespace detail {

template <class Format>
struct scale_of {
  using type = float;
};
template <class Format>
requires requires {
  typename Format::scale;
}
struct scale_of<Format> {
  using type = typename Format::scale;
};

template <class Format, range R>
constexpr bool rounds_at_random() {
  if constexpr (requires { Format::template at_random<R>; })
    return Format::template at_random<R>;
  else
    return false;
}

/// A format whose moments are all rounded at random.
template <class Format>
struct format_at_random {
  template <range R>
  using codec = codec_for<Format, R>;
  using scale = typename scale_of<Format>::type;
  static constexpr int block = format_traits<Format, range::any>::block;
  template <range>
  static constexpr bool at_random = true;
};

}  // namespace detail

/// The code of element i, and another in its place: a half of a byte where two share one.
template <codec C>
MEMFIT_HD inline std::uint32_t load_code(typename C::code const* codes, std::int64_t i) {
  if constexpr (code_width<C>() == 4)
    return (std::uint32_t{codes[i / 2]} >> (4 * (i % 2))) & 0xfu;
  else
    return codes[i];
}
template <codec C>
MEMFIT_HD inline void store_code(typename C::code* codes, std::int64_t i, std::uint32_t pattern) {
  if constexpr (code_width<C>() == 4) {
    auto const shift = 4 * (i % 2);
    auto const other = std::uint32_t{codes[i / 2]} & (0xf0u >> shift);
    codes[i / 2] = static_cast<typename C::code>(other | (pattern & 0xfu) << shift);
  } else {
    codes[i] = static_cast<typename C::code>(pattern);
  }
}

/// A slot of this range and scaling in this format.
template <block_format Format, range R, scaling S = scaling::largest>
struct storage {
  using codec = codec_for<Format, R>;
  using code = typename codec::code;
  using scale = typename detail::scale_of<Format>::type;  ///< float or bf16
  static_assert(std::is_same_v<scale, float> || std::is_same_v<scale, bf16>,
                "memfit: a format's scale is float or bf16");
  static constexpr memfit::range values = R;
  static constexpr memfit::scaling scales = S;
  static constexpr int block = format_traits<Format, R>::block;
  static constexpr int width = code_width<codec>();
  static constexpr bool scaled = codec::scaled;
  static constexpr bool at_random = detail::rounds_at_random<Format, R>();
  static constexpr std::int64_t code_size = sizeof(code);
  static constexpr std::int64_t scale_size = sizeof(scale);
  /// What codes of zeros are filled with.
  static constexpr auto zero_byte =
      static_cast<unsigned char>(codec::zero * (width == 4 ? 0x11u : 1u));

  /// Bytes of the codes of n elements; those of their scales. Where two codes share a byte and n is
  /// odd, the last high half is written as the code of zero.
  MEMFIT_HD static constexpr std::int64_t code_bytes(std::int64_t n) {
    return width == 4 ? n / 2 + n % 2 : n * code_size;
  }
  MEMFIT_HD static constexpr std::int64_t scale_bytes(std::int64_t n) {
    return scaled ? block_count(n, block) * scale_size : 0;
  }
  /// Where the code of element i lies, which is even where two share a byte.
  MEMFIT_HD static code* at(void* codes, std::int64_t i) {
    return static_cast<code*>(codes) + (width == 4 ? i / 2 : i);
  }
  MEMFIT_HD static code const* at(void const* codes, std::int64_t i) {
    return static_cast<code const*>(codes) + (width == 4 ? i / 2 : i);
  }
  /// Where the scale of block b lies; null for codecs without.
  MEMFIT_HD static scale* scale_at([[maybe_unused]] void* from, [[maybe_unused]] std::int64_t b) {
    if constexpr (scaled)
      return static_cast<scale*>(from) + b;
    else
      return nullptr;
  }

  /// The scale of block b; 1 for codecs without.
  MEMFIT_HD static float load_scale([[maybe_unused]] void const* from,
                                    [[maybe_unused]] std::int64_t b) {
    if constexpr (!scaled)
      return 1.0f;
    else if constexpr (std::is_same_v<scale, float>)
      return static_cast<float const*>(from)[b];
    else
      return from_bits<float>(std::uint32_t{static_cast<bf16 const*>(from)[b].bits} << 16);
  }
  /// Stores what scale_for gave.
  MEMFIT_HD static void store_scale([[maybe_unused]] void* to, [[maybe_unused]] std::int64_t b,
                                    [[maybe_unused]] std::uint32_t pattern) {
    if constexpr (!scaled)
      return;
    else if constexpr (std::is_same_v<scale, float>)
      static_cast<float*>(to)[b] = from_bits<float>(pattern);
    else
      static_cast<bf16*>(to)[b].bits = static_cast<std::uint16_t>(pattern >> 16);
  }
  /// The scale, as a pattern, of a block whose largest magnitude has the pattern `most`: that
  /// itself, or the next above it that can be stored, or the next power of two. Infinities and NaN
  /// stay what they are; where the next is no float, the largest that is.
  MEMFIT_HD static constexpr std::uint32_t scale_for(std::uint32_t most) {
    constexpr bool narrow = std::is_same_v<scale, bf16>;
    if (!scaled || most >= 0x7f800000u) return most;
    if (S == scaling::power_of_two && most <= 0x7f000000u)
      return (most + 0x007fffffu) & 0x7f800000u;
    if (!narrow) return most;
    return most > 0x7f7f0000u ? 0x7f7f0000u : (most + 0xffffu) & 0xffff0000u;
  }
};

}  // namespace memfit
