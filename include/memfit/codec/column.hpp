// Columns: how a codec's codes, scales and remainders lie in memory, for moments and parameters.
// Used by the drivers and by the optimizer; the parameter columns are third arguments of optimizer.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/concept.hpp"
#include "memfit/codec/float.hpp"
#include "memfit/codec/storage.hpp"
#include "memfit/core/random.hpp"

namespace memfit {

/// The code of a new moment: like encode, but a non-negative slot keeps what is above zero above
/// zero. `positive` tells whether the value was so before it was scaled.
template <class C, range R, class F>
MEMFIT_HD inline uint_of<F> encode_moment(F const& x, mask_of<F> const& positive) {
  using U = uint_of<F>;
  if constexpr (R == range::any)
    return C::encode(x);
  else if constexpr (requires { C::encode_above(x, positive); })
    return C::encode_above(x, positive);
  else
    return larger(C::encode(x) & code_bits<C>, select(positive, U(1u), U(0u)));
}

/// A codec that has such a quick way, at least for one kind of slot.
template <class C>
concept decides_nearly = requires(float x, bool positive, bool& unsure) {
  C::encode_nearly(x, unsure);
}
|| requires(float x, bool positive, bool& unsure) {
  C::encode_above_nearly(x, positive, unsure);
};

/// The nearest code, but a codec that decides quickly, save for a few values, marks these in
/// `unsure` and leaves them to encode.
template <class C, class F>
MEMFIT_HD inline uint_of<F> encode_nearly(F const& x, doubt_of<F>& unsure) {
  if constexpr (requires { C::encode_nearly(x, unsure); })
    return C::encode_nearly(x, unsure);
  else
    return C::encode(x);
}

/// The same for encode_moment.
template <class C, range R, class F>
MEMFIT_HD inline uint_of<F> encode_moment_nearly(F const& x, mask_of<F> const& positive,
                                                 doubt_of<F>& unsure) {
  if constexpr (R == range::any)
    return encode_nearly<C>(x, unsure);
  else if constexpr (requires { C::encode_above_nearly(x, positive, unsure); })
    return C::encode_above_nearly(x, positive, unsure);
  else if constexpr (requires { C::encode_nearly(x, unsure); })
    return larger(C::encode_nearly(x, unsure) & code_bits<C>,
                  select(positive, uint_of<F>(1u), uint_of<F>(0u)));
  else
    return encode_moment<C, R>(x, positive);
}

namespace detail {

/// The codes next to a code: away from zero on the side of x, and toward zero.
template <class C, class F>
MEMFIT_HD inline uint_of<F> outward(uint_of<F> const& c, [[maybe_unused]] F const& x) {
  using U = uint_of<F>;
  auto const up = select(c < U(code_bits<C>), c + 1u, c);
  if constexpr (C::zero == 0) {
    return up;
  } else {
    auto const falls = (c < U(C::zero)) | ((c == U(C::zero)) & (x < F(0.0f)));
    return select(falls, select(c > U(0u), c - 1u, c), up);
  }
}
template <class C, class U>
MEMFIT_HD inline U inward(U const& c) {
  return C::zero == 0 ? U(c - 1u) : U(select(c > U(C::zero), c - 1u, c + 1u));
}

/// The code of the largest magnitude that is not above that of x, on its side.
template <class C, class F>
MEMFIT_HD inline uint_of<F> encode_below(F const& x) {
  if constexpr (requires { C::encode_below(x); }) {
    return C::encode_below(x);
  } else {
    auto const c = uint_of<F>(C::encode(x) & code_bits<C>);
    return select(abs(C::decode(c)) > abs(x), inward<C>(c), c);
  }
}

}  // namespace detail

/// The code of a signed moment, rounded toward zero where `fading` holds: where the gradient is
/// zero a moment only shrinks, and to nearest it would stay for ever at a code whose neighbour is
/// further away than one step's decay.
template <class C, class F>
MEMFIT_HD inline uint_of<F> encode_fading(F const& x, mask_of<F> const& fading) {
  auto const c = C::encode(x) & code_bits<C>;
  auto const beyond = abs(C::decode(c)) > abs(x);
  return select(beyond & fading, detail::inward<C>(c), c);
}

/// The code of a moment rounded to one of the two codes around it, so that over 32 random bits its
/// value has the exact expectation, to 2^-24 of their distance; where `positive` holds, a
/// non-negative slot never gets zero, and nothing gets beyond 1.
template <class C, range R, class F>
MEMFIT_HD inline uint_of<F> encode_at_random(F const& x, mask_of<F> const& positive,
                                             uint_of<F> const& noise) {
  using U = uint_of<F>;
  auto const a = abs(x);
  auto const inner = detail::encode_below<C>(x);
  auto outer = detail::outward<C>(inner, x);
  if constexpr (C::scaled) outer = select(abs(C::decode(outer)) > F(1.0f), inner, outer);
  auto const least = abs(C::decode(inner)), most = abs(C::decode(outer));
  auto const part = product(to_float(noise >> 8), F(0x1p-24f));
  auto const up = product(part, most - least) < a - least;
  auto const code = U(select(up, outer, inner));
  if constexpr (R == range::non_negative)
    return select(positive, larger(code, U(1u)), code);
  else
    return code;
}

namespace detail {

/// The value of a moment's code under its block's scale: a non-negative code above zero stays a
/// value above zero even where the product would vanish, unless the scale itself is zero.
template <class C, range R, class U>
MEMFIT_HD inline value_of<U> moment_value(U const& c, value_of<U> const& scale) {
  if constexpr (!C::scaled) {
    return C::decode(c);
  } else {
    using F = value_of<U>;
    auto x = product(C::decode(c), scale);
    if constexpr (R == range::non_negative)
      return from_bits<F>(larger(bits(x), select(scale > F(0.0f), smaller(c, 1u), U(0u))));
    else
      return x;
  }
}

}  // namespace detail

/// A parameter column: how a float is stored in what the model reads (`element`, `code`) and in
/// what the optimizer keeps beside it (`kept`, void for nothing).
///
/// `encode(x, noise)` gives both patterns, `decode(visible, kept)` the float; `decode_visible` is
/// the model's reading. Where `takes_noise` holds, noise is 32 random bits per value.
template <class P>
concept parameter_column = requires(std::uint32_t c, float x) {
  typename P::element;
  typename P::code;
  typename P::kept;
  { P::takes_noise } -> std::convertible_to<bool>;
  { P::overflow } -> std::convertible_to<std::uint32_t>;
  { P::template decode<std::uint32_t>(c, c) } -> std::same_as<float>;
  { P::template decode_visible<std::uint32_t>(c) } -> std::same_as<float>;
  { P::template encode<float>(x, c).visible } -> std::convertible_to<std::uint32_t>;
};

/// Both patterns of a parameter; `kept` means nothing where the column keeps nothing.
template <class U>
struct parameter_code {
  U visible, kept;
};

namespace detail {

/// What all columns that show Scalar to the model share.
template <class Scalar>
struct column_base {
  using scalar_codec = codec_for<Scalar, range::any>;
  using code = typename scalar_codec::code;
  using element = std::conditional_t<std::is_same_v<Scalar, fp32>, float, Scalar>;
  using kept = void;
  static constexpr bool takes_noise = false;
  static constexpr std::uint32_t overflow = scalar_codec::overflow;
  template <class U>
  MEMFIT_HD static value_of<U> decode_visible(U const& visible) {
    return scalar_codec::decode(visible);
  }
};

/// The parameter is the scalar alone, rounded to nearest even.
template <class Scalar>
struct plain_column : column_base<Scalar> {
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& visible, U const&) {
    return plain_column::decode_visible(visible);
  }
  template <class F>
  MEMFIT_HD static parameter_code<uint_of<F>> encode(F const& x, uint_of<F> const&) {
    auto const c = column_base<Scalar>::scalar_codec::encode(x);
    return {c, c};
  }
};

/// Codes of one of the two neighbours of x, the nearer the likelier.
template <class Scalar>
struct random_rounding;

template <>
struct random_rounding<bf16> {
  static constexpr std::uint32_t overflow = 0x7f7f0001u;
  template <class F>
  MEMFIT_HD static uint_of<F> code(F const& x, uint_of<F> const& noise) {
    auto const u = bits(x);
    auto const finite = (u & 0x7fffffffu) < uint_of<F>(0x7f800000u);
    return select(finite, (u + (noise & 0xffffu)) >> 16, bf16_bits(x));
  }
};

template <>
struct random_rounding<fp16> {
  static constexpr std::uint32_t overflow = 0x477fe001u;
  template <class F>
  MEMFIT_HD static uint_of<F> code(F const& x, uint_of<F> const& noise) {
    using U = uint_of<F>;
    auto const u = bits(x);
    auto const a = u & 0x7fffffffu;
    auto const random = noise & 0x1fffu;  // of the 13 bits that fp16 lacks
    auto const tiny = a < U(0x38800000u);
    // Below 2^-14 the spacing is 2^-24: in units of 2^-37 there are 13 bits too many again.
    auto const units = truncate(product(from_bits<F>(select(tiny, a, U(0u))), F(0x1p37f)));
    auto const finite = select(tiny, (units + random) >> 13, ((a + random) >> 13) - (112u << 10));
    return select(a < U(overflow), ((u >> 16) & 0x8000u) | finite, fp16_bits(x));
  }
};

}  // namespace detail

/// What is rounded up or down at random, so that its expectation is the exact result. Of bf16 and
/// fp16 it is a parameter column: nothing beside it, 2 bytes per parameter. Of any format it is a
/// state format, of the same bytes: all moments are rounded at random, second ones never to zero.
template <block_format Format>
struct stochastic : detail::format_at_random<Format> {};

template <block_format Scalar>
requires requires {
  detail::random_rounding<Scalar>::overflow;
}
struct stochastic<Scalar> : detail::column_base<Scalar>, detail::format_at_random<Scalar> {
  static constexpr bool takes_noise = true;
  static constexpr std::uint32_t overflow = detail::random_rounding<Scalar>::overflow;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& visible, U const&) {
    return detail::column_base<Scalar>::decode_visible(visible);
  }
  template <class F>
  MEMFIT_HD static parameter_code<uint_of<F>> encode(F const& x, uint_of<F> const& noise) {
    auto const c = detail::random_rounding<Scalar>::code(x, noise);
    return {c, c};
  }
};

/// A bf16 parameter and a 16-bit remainder beside it: together the exact fp32 value. The model
/// reads the upper half to nearest, ties away from zero. 4 bytes per parameter.
template <class Scalar>
struct split;

template <>
struct split<bf16> : detail::column_base<bf16> {
  using kept = std::uint16_t;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& visible, U const& remainder) {
    return from_bits<value_of<U>>(((visible << 16) + remainder) - ((remainder & 0x8000u) << 1));
  }
  template <class F>
  MEMFIT_HD static parameter_code<uint_of<F>> encode(F const& x, uint_of<F> const&) {
    using U = uint_of<F>;
    auto const u = bits(x);
    auto const nan = (u & 0x7fffffffu) > U(0x7f800000u);
    return {select(nan, (u >> 16) | 0x40u, (u + 0x8000u) >> 16), select(nan, U(0u), u & 0xffffu)};
  }
};

/// A 16-bit parameter to nearest even and an fp32 master copy beside it. 6 bytes per parameter.
template <class Scalar>
struct master : detail::column_base<Scalar> {
  using kept = std::uint32_t;
  template <class U>
  MEMFIT_HD static value_of<U> decode(U const&, U const& copy) {
    return from_bits<value_of<U>>(copy);
  }
  template <class F>
  MEMFIT_HD static parameter_code<uint_of<F>> encode(F const& x, uint_of<F> const&) {
    return {detail::column_base<Scalar>::scalar_codec::encode(x), bits(x)};
  }
};

namespace detail {

template <class Param>
struct column_of {
  using type = Param;
};
template <>
struct column_of<fp32> {
  using type = plain_column<fp32>;
};
template <>
struct column_of<bf16> {
  using type = plain_column<bf16>;
};
template <>
struct column_of<fp16> {
  using type = plain_column<fp16>;
};

}  // namespace detail

/// The column that a third argument of optimizer names: a scalar type alone, or a column itself.
template <class Param>
using column_for = typename detail::column_of<Param>::type;

}  // namespace memfit
