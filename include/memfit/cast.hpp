// Tensors from one floating-point type to another.
// Used to feed 16-bit products from fp32 tensors, and to read their results back.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/codec/column.hpp"
#include "memfit/core/check.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/exec/list.hpp"

namespace memfit {

namespace detail {

template <class Element>
struct column_of_element {
  using type = column_for<Element>;
};
template <>
struct column_of_element<float> {
  using type = column_for<fp32>;
};

template <class Column, class E, class From, class To>
void cast_to(char const* call, E const& exec, From&& from, To&& to, std::uint64_t seed) {
  auto const a = ref(from);
  auto const b = ref(to);
  static_assert(scalar_element<element_of<From>> && scalar_element<element_of<To>>,
                "memfit::cast: elements are fp32, bf16 or fp16");
  require_data(call, "the source", a.name, a);
  require_data(call, "the target", b.name, b);
  require_count(call, "the target", b.name, b, a.count);
  require_disjoint(call, b.name, "the source", a, "the target", b);
  sum_item item{};
  item.visible = b.data;
  item.source = const_cast<element_of<From>*>(a.data);
  item.source_kind = memfit::kind_of<element_of<From>>;
  item.count = a.count;
  sum_call what{};
  what.seed = seed;
  what.overwrite = true;
  naming(call, b.name, b.count, 1, [&] { exec.template sum<Column>(item, what); });
}

}  // namespace detail

/// Writes every element of a tensor to another one of the same count: fp32, bf16 or fp16, to
/// nearest, ties to even.
///
/// From fp32 to fp16, magnitudes from 65520 become infinite. A NaN stays one. Ordered on the
/// executor, waits for nothing; the same bits from every executor, but for the patterns of NaN.
/// Throws argument_error for null data, other counts and tensors that overlap.
///
/// What should be bf16 or fp16: the factors of matrix products and convolutions, whose sums are
/// formed in fp32, and the activations kept for the backward pass. What should stay fp32, and why:
///  - sums over many elements (means, variances, losses, norms, softmax denominators, gradients of
///    biases): with 8 or 11 significant bits a sum stops growing at some hundreds of equal terms;
///  - exponentials and logarithms (softmax, cross entropy): fp16 overflows from exp(11.1) on, and
///    what is close to 1 has no digits left for its logarithm;
///  - normalization layers: differences of near numbers, and squares that leave the range of fp16;
///  - parameters while they are updated: an update below half a unit in the last place is lost. The
///    parameter columns master<…>, split<…>, corrected<…> and stochastic<…> of the optimizer hold
///    them and write the 16-bit copy that the model reads in the same pass as the step: no cast is
///    needed there.
template <executor E, tensor From, tensor To>
void cast(E const& exec, From&& from, To&& to) {
  using column = typename detail::column_of_element<element_of<To>>::type;
  detail::cast_to<column>("cast", exec, from, to, 0);
}

/// The same to bf16 or fp16, rounded up or down at random so that the expectation of the result is
/// the element itself; values that the type has stay. The noise depends on the seed and the
/// element's number alone: use another seed for every call.
template <executor E, tensor From, tensor To>
void cast_stochastic(E const& exec, From&& from, To&& to, std::uint64_t seed) {
  static_assert(!std::is_same_v<element_of<To>, float> && !std::is_same_v<element_of<To>, fp32>,
                "memfit::cast_stochastic: the target's elements are bf16 or fp16");
  detail::cast_to<stochastic<element_of<To>>>("cast_stochastic", exec, from, to, seed);
}

}  // namespace memfit
