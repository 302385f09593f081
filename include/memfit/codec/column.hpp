// Columns: how a codec's codes, scales and remainders lie in memory, for moments and parameters.
// Used by the drivers and by the optimizer; the parameter columns are third arguments of optimizer.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/concept.hpp"
#include "memfit/codec/extended.hpp"
#include "memfit/codec/float.hpp"
#include "memfit/codec/storage.hpp"

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
  auto up = select(c < U(code_bits<C>), c + 1u, c);
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

/// What the model reads is the nearest Scalar, ties away from zero, of a value that has `More` bits
/// of mantissa below Scalar's own; beside it lie these bits, which count from the nearest Scalar
/// and so are signed.
template <class Scalar, int More, class Kept>
struct two_part_column : column_base<Scalar> {
  using whole = extended<Scalar, More>;
  using kept = Kept;
  static constexpr std::uint32_t overflow = whole::overflow;

  template <class U>
  MEMFIT_HD static value_of<U> decode(U const& visible, U const& rest) {
    // There is nothing below a zero, which somebody else must have written.
    auto const negative = has_bits(rest, half), more = has_bits(visible, 0x7fffu);
    return whole::value(subtract_where(negative & more, (visible << More) + rest, 2 * half));
  }
  template <class F>
  MEMFIT_HD static parameter_code<uint_of<F>> encode(F const& x, uint_of<F> const&) {
    return parts(whole::nearest(x));
  }

 protected:
  template <class U>
  MEMFIT_HD static parameter_code<U> parts(U const& w) {
    return {(w + half) >> More, w & (2 * half - 1u)};
  }

 private:
  static constexpr std::uint32_t half = 1u << (More - 1);
};

template <class Scalar>
concept narrow = std::is_same_v<Scalar, bf16> || std::is_same_v<Scalar, fp16>;

}  // namespace detail

/// A 16-bit parameter, bf16 or fp16, and a 16-bit remainder beside it. The model reads the value to
/// nearest, ties away from zero. 4 bytes per parameter.
///
/// With bf16 both are the exact fp32 value. With fp16 they are so from 2^-17 on to below 65520;
/// smaller magnitudes are rounded to multiples of 2^-40, larger ones are infinite.
template <class Scalar>
struct split;

template <detail::narrow Scalar>
struct split<Scalar> : detail::two_part_column<Scalar, 16, std::uint16_t> {};

/// A 16-bit parameter, bf16 or fp16, and an 8-bit correction beside it: a 24-bit float with the
/// exponent of the former, to nearest even. The model reads its nearest 16 bits, ties away from
/// zero. 3 bytes per parameter.
///
/// With bf16 the value has 16 significant bits: it is off by at most 2^-16 of itself, 1/512 of the
/// spacing of bf16 (127 steps in half a spacing, arXiv:2602.23349, give 1/508). With fp16 it has 19
/// from 2^-14 on, and multiples of 2^-32 below: eight times finer, where parameters stay in the
/// range of fp16. A step shorter than half a unit is lost, and one of a few units goes as far as
/// whole units: 1 decayed 10,000 times by 1e-5 of itself (to 0.9048) ends at 0.8474 in bf16, and at
/// 0.9024 … 0.9069, right in the mean, in stochastic<corrected<bf16>>.
template <class Scalar>
struct corrected;

template <detail::narrow Scalar>
struct corrected<Scalar> : detail::two_part_column<Scalar, 8, std::uint8_t> {};

/// What is rounded up or down at random, so that its expectation is the exact result. Of bf16 and
/// fp16 it is a parameter column with nothing beside it, 2 bytes per parameter, and of
/// corrected<bf16> and corrected<fp16> one of 3 bytes, rounded in the last bit of the correction.
/// Of any format it is a state format, of the same bytes: all moments are rounded at random, second
/// ones never to zero.
template <class Stored>
struct stochastic;

template <block_format Format>
struct stochastic<Format> : detail::format_at_random<Format> {};

template <block_format Scalar>
requires detail::narrow<Scalar>
struct stochastic<Scalar> : detail::plain_column<Scalar>, detail::format_at_random<Scalar> {
  static constexpr bool takes_noise = true;
  static constexpr std::uint32_t overflow = detail::extended<Scalar, 0>::random_overflow;
  template <class F>
  MEMFIT_HD static parameter_code<uint_of<F>> encode(F const& x, uint_of<F> const& noise) {
    auto const c = detail::extended<Scalar, 0>::random(x, noise);
    return {c, c};
  }
};

template <class Scalar>
struct stochastic<corrected<Scalar>> : corrected<Scalar> {
  static constexpr bool takes_noise = true;
  static constexpr std::uint32_t overflow = corrected<Scalar>::whole::random_overflow;
  template <class F>
  MEMFIT_HD static parameter_code<uint_of<F>> encode(F const& x, uint_of<F> const& noise) {
    return stochastic::parts(corrected<Scalar>::whole::random(x, noise));
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
