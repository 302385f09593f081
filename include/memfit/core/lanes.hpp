// Arithmetic on one value or many: the few operations that rules and codecs are written in.
// Used by core, codec and rule as templates on F; an executor adds its own F by specialising ops.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/core/config.hpp"

namespace memfit {

/// The operations of a floating-point value type F and of its unsigned companion.
///
/// F is `float` (also on the device) or a bundle of lanes. `uint` holds one 32-bit pattern per
/// value, `mask` one truth value. Every operation is exact or correctly rounded, so all F give the
/// same bits.
template <class F>
struct ops;

namespace detail {

/// The same value, out of the compiler's sight: what follows cannot be fused with what made it.
template <class T>
MEMFIT_HD inline T rounded(T x) {
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  asm("" : "+x"(x));
#elif defined(__aarch64__) && !defined(__CUDA_ARCH__)
  asm("" : "+w"(x));
#endif
  return x;
}

}  // namespace detail

template <>
struct ops<float> {
  using value = float;
  using uint = std::uint32_t;
  using mask = bool;
  static constexpr int width = 1;
  template <class Body>
  static void apart(Body const& body) {
    body.template operator()<float>();
  }

  MEMFIT_HD static float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
  }
  MEMFIT_HD static float sqrt(float a) {
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(a);
#else
    return __builtin_sqrtf(a);
#endif
  }
  MEMFIT_HD static uint bits(float a) {
    uint u;
    __builtin_memcpy(&u, &a, sizeof u);
    return u;
  }
  MEMFIT_HD static float from_bits(uint u) {
    float a;
    __builtin_memcpy(&a, &u, sizeof a);
    return a;
  }
  MEMFIT_HD static float to_float(uint u) {
    return static_cast<float>(static_cast<std::int32_t>(u));
  }
  MEMFIT_HD static uint truncate(float a) {
    return static_cast<uint>(static_cast<std::int32_t>(a));
  }
  MEMFIT_HD static float select(bool m, float a, float b) {
    return m ? a : b;
  }
  MEMFIT_HD static uint select(bool m, uint a, uint b) {
    return m ? a : b;
  }
  MEMFIT_HD static uint larger(uint a, uint b) {
    return a < b ? b : a;
  }
  MEMFIT_HD static uint smaller(uint a, uint b) {
    return a < b ? a : b;
  }
  MEMFIT_HD static uint merge(uint where, uint a, uint b) {
    return (a & where) | (b & ~where);
  }
  MEMFIT_HD static uint subtract_where(bool m, uint a, uint b) {
    return m ? a - b : a;
  }
  MEMFIT_HD static bool test(uint a, uint b) {
    return (a & b) != 0;
  }
  MEMFIT_HD static float greater(float a, float b) {
    return a > b ? a : b;
  }
  MEMFIT_HD static bool any(bool m) {
    return m;
  }
  template <class T>
  MEMFIT_HD static T lookup(T const (&table)[8], uint index) {
    return table[index & 7u];
  }
  template <class T>
  MEMFIT_HD static T lookup(T const (&table)[16], uint index) {
    return table[index & 15u];
  }
  MEMFIT_HD static uint largest(uint a) {
    return a;
  }
  MEMFIT_HD static int count(bool m) {
    return m ? 1 : 0;
  }
  MEMFIT_HD static uint iota(uint first) {
    return first;
  }
  MEMFIT_HD static float load(float const* p) {
    return *p;
  }
  MEMFIT_HD static void store(float* p, float a) {
    *p = a;
  }
  template <class Code>
  MEMFIT_HD static uint load(Code const* p) {
    Code c;
    __builtin_memcpy(&c, p, sizeof c);
    return c;
  }
  template <class Code>
  MEMFIT_HD static void store(Code* p, uint a) {
    auto const c = static_cast<Code>(a);
    __builtin_memcpy(p, &c, sizeof c);
  }
  MEMFIT_HD static float product(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return detail::rounded(a * b);
#endif
  }
};

template <>
struct ops<std::uint32_t> : ops<float> {};

/// The 32-bit patterns that go with F, and the truth values of comparing F.
template <class F>
using uint_of = typename ops<F>::uint;
template <class F>
using mask_of = typename ops<F>::mask;
template <class U>
using value_of = typename ops<U>::value;

/// What gathers doubts about many F: a mask, unless ops<F> names a type that does it in less.
template <class F>
struct doubt {
  using type = mask_of<F>;
};
template <class F>
requires requires {
  typename ops<F>::doubt;
}
struct doubt<F> {
  using type = typename ops<F>::doubt;
};
template <class F>
using doubt_of = typename doubt<F>::type;

namespace detail {

template <class A, class B>
using wider = std::conditional_t<std::is_arithmetic_v<A>, B, A>;

}  // namespace detail

/// a * b + c with one rounding; plain numbers mix with lanes.
template <class A, class B, class C>
MEMFIT_HD inline auto fma(A const& a, B const& b, C const& c) {
  using F = detail::wider<A, detail::wider<B, C>>;
  return ops<F>::fma(F(a), F(b), F(c));
}

/// a * b rounded by itself: no compiler may fuse it into a sum that uses it.
template <class F>
MEMFIT_HD inline F product(F const& a, F const& b) {
  return ops<F>::product(a, b);
}

/// Correctly rounded square root.
template <class F>
MEMFIT_HD inline F sqrt(F const& a) {
  return ops<F>::sqrt(a);
}

/// Twice the square root of a normal number, plus another, and a / b, to 2^-22 of the root and the
/// quotient: not the same for all F. For what is checked afterwards, and decides nothing by itself.
template <class F>
MEMFIT_HD inline F twice_root_nearly(F const& a, float plus) {
  if constexpr (requires { ops<F>::twice_root_nearly(a, plus); })
    return ops<F>::twice_root_nearly(a, plus);
  else
    return fma(ops<F>::sqrt(a), 2.0f, plus);
}
template <class F>
MEMFIT_HD inline F quotient_nearly(F const& a, F const& b) {
  if constexpr (requires { ops<F>::quotient_nearly(a, b); })
    return ops<F>::quotient_nearly(a, b);
  else
    return a / b;
}

/// a / b rounded correctly, for whole numbers of at most 24 bits.
template <class F>
MEMFIT_HD inline F quotient_of_counts(F const& a, F const& b) {
  if constexpr (requires { ops<F>::quotient_of_counts(a, b); })
    return ops<F>::quotient_of_counts(a, b);
  else
    return a / b;
}

/// a where the mask holds, else b.
template <class M, class A, class B>
MEMFIT_HD inline auto select(M const& m, A const& a, B const& b) {
  using F = detail::wider<A, B>;
  return ops<F>::select(m, F(a), F(b));
}

/// The bit pattern of a value, and back.
template <class F>
MEMFIT_HD inline uint_of<F> bits(F const& a) {
  return ops<F>::bits(a);
}
template <class F>
MEMFIT_HD inline F from_bits(uint_of<F> const& u) {
  return ops<F>::from_bits(u);
}

/// The whole number nearest to zero from a, for |a| < 2^31; and the value of a count below 2^31.
template <class F>
MEMFIT_HD inline uint_of<F> truncate(F const& a) {
  return ops<F>::truncate(a);
}
template <class U>
MEMFIT_HD inline value_of<U> to_float(U const& a) {
  return ops<U>::to_float(a);
}

/// The larger and the smaller of two patterns.
template <class A, class B>
MEMFIT_HD inline auto larger(A const& a, B const& b) {
  using U = detail::wider<A, B>;
  return ops<U>::larger(U(a), U(b));
}
template <class A, class B>
MEMFIT_HD inline auto smaller(A const& a, B const& b) {
  using U = detail::wider<A, B>;
  return ops<U>::smaller(U(a), U(b));
}

/// Bits of a where `where` has ones, bits of b elsewhere.
template <class U>
MEMFIT_HD inline U merge(std::uint32_t where, U const& a, U const& b) {
  return ops<U>::merge(U(where), a, b);
}

/// a - b where the mask holds, else a.
template <class M, class U, class B>
MEMFIT_HD inline U subtract_where(M const& m, U const& a, B const& b) {
  return ops<U>::subtract_where(m, a, U(b));
}

/// The pattern of a value without its N lowest bits.
template <int N, class F>
MEMFIT_HD inline uint_of<F> upper_bits(F const& a) {
  return bits(a) >> N;
}

/// Whether a has any of these bits.
template <class U>
MEMFIT_HD inline auto has_bits(U const& a, std::uint32_t these) {
  return ops<U>::test(a, U(these));
}

/// The greater of a and a plain number; the number where a is a NaN.
template <class F>
MEMFIT_HD inline F at_least(F const& a, float least) {
  return ops<F>::greater(a, F(least));
}

/// table[index mod N], value by value: 8 or 16 entries, or 32 for F that look up widely. These have
/// high_product_plus(a, b, c), the upper 32 bits of a b plus c, besides.
template <class T, int N, class U>
MEMFIT_HD inline auto lookup(T const (&table)[N], U const& index) {
  return ops<U>::lookup(table, index);
}
template <class F>
inline constexpr bool looks_up_widely = requires(float const (&table)[32], uint_of<F> index) {
  ops<F>::lookup(table, index);
};

/// from - n where x is negative, else n.
template <class F>
MEMFIT_HD inline uint_of<F> from_where_negative(std::uint32_t from, uint_of<F> const& n,
                                                F const& x) {
  return select(x < F(0.0f), from - n, n);
}

/// n + 1 where a is at least b, else n.
template <class F>
MEMFIT_HD inline uint_of<F> next_where_at_least(uint_of<F> const& n, F const& a, F const& b) {
  return select(a >= b, n + 1u, n);
}

/// Whether the mask holds for any value.
template <class F>
MEMFIT_HD inline bool any(mask_of<F> const& m) {
  return ops<F>::any(m);
}

/// |a|.
template <class F>
MEMFIT_HD inline F abs(F const& a) {
  return from_bits<F>(bits(a) & 0x7fffffffu);
}

/// |a| with the sign of b.
template <class F>
MEMFIT_HD inline F with_sign_of(F const& b, F const& a) {
  return from_bits<F>(merge(0x80000000u, bits(b), bits(a)));
}

}  // namespace memfit
