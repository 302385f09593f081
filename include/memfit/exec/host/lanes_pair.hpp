// Two bundles of lanes as one value: every operation is done on both, one after the other.
// Used by the host driver to give out-of-order units two independent chains of the same arithmetic.
#pragma once

#include <cstdint>

#include "memfit/core/lanes.hpp"

#if defined(__CUDACC__)
#define MEMFIT_PAIR _Pragma("nv_exec_check_disable") __host__ __device__ inline
#else
#define MEMFIT_PAIR inline
#endif

namespace memfit::paired {

#define MEMFIT_BINARY(type, op)                                       \
  MEMFIT_PAIR friend type operator op(type const& x, type const& y) { \
    return {x.a op y.a, x.b op y.b};                                  \
  }
#define MEMFIT_COMPARE(type, op)                                         \
  MEMFIT_PAIR friend mask<F> operator op(type const& x, type const& y) { \
    return {x.a op y.a, x.b op y.b};                                     \
  }

template <class F>
struct mask {
  mask_of<F> a, b;
  MEMFIT_BINARY(mask, &)
  MEMFIT_BINARY(mask, |)
  MEMFIT_PAIR friend mask operator!(mask const& x) { return {!x.a, !x.b}; }
};

template <class F>
struct u32 {
  uint_of<F> a, b;
  u32() = default;
  MEMFIT_PAIR u32(std::uint32_t x) : a(x), b(x) {}
  MEMFIT_PAIR u32(uint_of<F> const& x, uint_of<F> const& y) : a(x), b(y) {}
  MEMFIT_BINARY(u32, +)
  MEMFIT_BINARY(u32, -)
  MEMFIT_BINARY(u32, *)
  MEMFIT_BINARY(u32, &)
  MEMFIT_BINARY(u32, |)
  MEMFIT_BINARY(u32, ^)
  MEMFIT_COMPARE(u32, <)
  MEMFIT_COMPARE(u32, >)
  MEMFIT_COMPARE(u32, ==)
  MEMFIT_PAIR friend u32 operator<<(u32 const& x, int n) { return {x.a << n, x.b << n}; }
  MEMFIT_PAIR friend u32 operator>>(u32 const& x, int n) { return {x.a >> n, x.b >> n}; }
};

template <class F>
struct u16 {
  using base = typename ops<F>::uint16;
  base a, b;
  u16() = default;
  MEMFIT_PAIR u16(std::uint32_t x) : a(x), b(x) {}
  MEMFIT_PAIR u16(base const& x, base const& y) : a(x), b(y) {}
  MEMFIT_BINARY(u16, +)
  MEMFIT_BINARY(u16, &)
  MEMFIT_PAIR friend u16 operator<<(u16 const& x, int n) { return {x.a << n, x.b << n}; }
};

template <class F>
struct f32 {
  F a, b;
  f32() = default;
  MEMFIT_PAIR f32(float x) : a(x), b(x) {}
  MEMFIT_PAIR f32(F const& x, F const& y) : a(x), b(y) {}
  MEMFIT_BINARY(f32, +)
  MEMFIT_BINARY(f32, -)
  MEMFIT_BINARY(f32, *)
  MEMFIT_BINARY(f32, /)
  MEMFIT_COMPARE(f32, <)
  MEMFIT_COMPARE(f32, >)
  MEMFIT_COMPARE(f32, <=)
  MEMFIT_COMPARE(f32, >=)
  MEMFIT_COMPARE(f32, ==)
  MEMFIT_PAIR friend f32 operator-(f32 const& x) { return {-x.a, -x.b}; }
};

#undef MEMFIT_BINARY
#undef MEMFIT_COMPARE

}  // namespace memfit::paired

namespace memfit {

template <class F>
struct ops<paired::f32<F>> {
  using base = ops<F>;
  using f32 = paired::f32<F>;
  using value = f32;
  using uint = paired::u32<F>;
  using uint16 = paired::u16<F>;
  using mask = paired::mask<F>;
  static constexpr int width = 2 * base::width;
  template <class Body>
  static void apart(Body const& body) {
    base::apart(body);
  }

  MEMFIT_PAIR static f32 fma(f32 const& x, f32 const& y, f32 const& z) {
    return {base::fma(x.a, y.a, z.a), base::fma(x.b, y.b, z.b)};
  }
  MEMFIT_PAIR static f32 product(f32 const& x, f32 const& y) { return x * y; }
  MEMFIT_PAIR static f32 sqrt(f32 const& x) { return {base::sqrt(x.a), base::sqrt(x.b)}; }
  MEMFIT_PAIR static f32 twice_root_nearly(f32 const& x, float plus) {
    return {memfit::twice_root_nearly(x.a, plus), memfit::twice_root_nearly(x.b, plus)};
  }
  MEMFIT_PAIR static uint bits(f32 const& x) { return {base::bits(x.a), base::bits(x.b)}; }
  MEMFIT_PAIR static f32 from_bits(uint const& x) {
    return {base::from_bits(x.a), base::from_bits(x.b)};
  }
  MEMFIT_PAIR static f32 to_float(uint const& x) {
    return {base::to_float(x.a), base::to_float(x.b)};
  }
  MEMFIT_PAIR static uint truncate(f32 const& x) {
    return {base::truncate(x.a), base::truncate(x.b)};
  }
  MEMFIT_PAIR static f32 select(mask const& m, f32 const& x, f32 const& y) {
    return {base::select(m.a, x.a, y.a), base::select(m.b, x.b, y.b)};
  }
  MEMFIT_PAIR static uint select(mask const& m, uint const& x, uint const& y) {
    return {base::select(m.a, x.a, y.a), base::select(m.b, x.b, y.b)};
  }
  MEMFIT_PAIR static uint larger(uint const& x, uint const& y) {
    return {base::larger(x.a, y.a), base::larger(x.b, y.b)};
  }
  MEMFIT_PAIR static uint smaller(uint const& x, uint const& y) {
    return {base::smaller(x.a, y.a), base::smaller(x.b, y.b)};
  }
  MEMFIT_PAIR static uint merge(uint const& where, uint const& x, uint const& y) {
    return {base::merge(where.a, x.a, y.a), base::merge(where.b, x.b, y.b)};
  }
  MEMFIT_PAIR static uint subtract_where(mask const& m, uint const& x, uint const& y) {
    return {base::subtract_where(m.a, x.a, y.a), base::subtract_where(m.b, x.b, y.b)};
  }
  MEMFIT_PAIR static mask test(uint const& x, uint const& y) {
    return {base::test(x.a, y.a), base::test(x.b, y.b)};
  }
  MEMFIT_PAIR static f32 greater(f32 const& x, f32 const& y) {
    return {base::greater(x.a, y.a), base::greater(x.b, y.b)};
  }
  MEMFIT_PAIR static bool any(mask const& m) { return base::any(m.a | m.b); }
  MEMFIT_PAIR static f32 lookup(float const (&table)[8], uint const& i) {
    return {base::lookup(table, i.a), base::lookup(table, i.b)};
  }
  MEMFIT_PAIR static f32 lookup(float const (&table)[16], uint const& i) {
    return {base::lookup(table, i.a), base::lookup(table, i.b)};
  }
  MEMFIT_PAIR static uint lookup(std::uint32_t const (&table)[8], uint const& i) {
    return {base::lookup(table, i.a), base::lookup(table, i.b)};
  }

  static std::uint32_t largest(uint const& x) { return base::largest(base::larger(x.a, x.b)); }
  static int count(mask const& m) { return base::count(m.a) + base::count(m.b); }
  static uint iota(std::uint32_t first) {
    return {base::iota(first), base::iota(first + static_cast<std::uint32_t>(base::width))};
  }
  static f32 load(float const* p) { return {base::load(p), base::load(p + base::width)}; }
  template <class Code>
  static uint load(Code const* p) {
    return {base::load(p), base::load(p + base::width)};
  }
  template <class Code>
  static uint16 load_patterns(Code const* p) {
    return {base::load_patterns(p), base::load_patterns(p + base::width)};
  }
  static f32 from_fp16(uint16 const& h) { return {base::from_fp16(h.a), base::from_fp16(h.b)}; }
  static uint load_halves(std::uint8_t const* p) {
    return {base::load_halves(p), base::load_halves(p + base::width / 2)};
  }
  static void store_halves(std::uint8_t* p, uint const& x) {
    base::store_halves(p, x.a);
    base::store_halves(p + base::width / 2, x.b);
  }
  template <class P, class V>
  static void store(P* p, V const& x) {
    base::store(p, x.a);
    base::store(p + base::width, x.b);
  }
};

template <class F>
struct ops<paired::u32<F>> : ops<paired::f32<F>> {};

}  // namespace memfit

#undef MEMFIT_PAIR
