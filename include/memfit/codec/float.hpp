// Codecs that keep a value as a float of 32 or 16 bits, without blocks or scales.
// Used for parameters, gradients and unquantized moments; the scalar types name them.
#pragma once

#include <cstdint>

#include "memfit/codec/concept.hpp"
#include "memfit/core/types.hpp"

namespace memfit {

/// Exact, 4 bytes.
struct fp32_codec {
  using code = std::uint32_t;
  static constexpr bool scaled = false;
  static constexpr std::uint32_t zero = 0;
  static constexpr std::uint32_t overflow = 0x7f800000u;  // least magnitude not held finitely
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return from_bits<value_of<U>>(c);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return bits(x);
  }
};

/// bf16 to nearest, ties to even, 2 bytes.
struct bf16_codec {
  using code = std::uint16_t;
  static constexpr bool scaled = false;
  static constexpr std::uint32_t zero = 0;
  static constexpr std::uint32_t overflow = 0x7f7f8000u;  // least magnitude not held finitely
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return detail::float_from_bf16<value_of<U>>(c);
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return detail::bf16_bits(x);
  }
};

/// fp16 to nearest, ties to even, 2 bytes; magnitudes from 65520 become infinite.
struct fp16_codec {
  using code = std::uint16_t;
  static constexpr bool scaled = false;
  static constexpr std::uint32_t zero = 0;
  static constexpr std::uint32_t overflow = 0x477ff000u;  // least magnitude not held finitely
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& c) {
    return detail::float_from_fp16<value_of<U>>(c);
  }
  template <class H>
  MEMFIT_HD static H fp16_pattern(H const& c) {
    return c;
  }
  template <class F>
  MEMFIT_HD static uint_of<F> encode(F const& x) {
    return detail::fp16_bits(x);
  }
};

template <range R>
struct format_traits<fp32, R> {
  using codec = fp32_codec;
  static constexpr int block = default_block;
};
template <range R>
struct format_traits<bf16, R> {
  using codec = bf16_codec;
  static constexpr int block = default_block;
};
template <range R>
struct format_traits<fp16, R> {
  using codec = fp16_codec;
  static constexpr int block = default_block;
};

}  // namespace memfit
