// What a driver is handed: the work of one step over many tensors; and what an executor offers.
// Used by executors to implement, and by the optimizer to call.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "memfit/codec/column.hpp"
#include "memfit/codec/storage.hpp"
#include "memfit/core/memory.hpp"
#include "memfit/core/random.hpp"
#include "memfit/rule/concept.hpp"

namespace memfit {

/// What the host knows of a gate that a scaler gave: the window it is good for, and whether a step
/// has used it.
struct gate_window {
  std::uint64_t number = 0;
  bool stepped = false;
};

/// Why a gate says skip; any number but 0 does.
inline constexpr std::uint32_t skip_nonfinite = 1;  ///< some gradient is not finite
inline constexpr std::uint32_t skip_empty = 2;      ///< there is no gradient: an empty window

/// Two numbers beside the gradient, in the executor's memory: a multiplier for every gradient
/// element (unscaling, clipping) and a flag that makes the step change nothing. Null stands for 1
/// and for "do not skip". After the multiplication, finite elements beyond ±limit count as ±limit.
/// Gates that a loss_scaler gave know their window besides.
struct gate {
  float const* multiplier = nullptr;
  std::uint32_t const* skip = nullptr;
  float limit = __builtin_huge_valf();
  gate_window* window = nullptr;
  std::uint64_t number = 0;

  /// Whether the window it was made for still lasts.
  bool is_current() const { return window == nullptr || window->number == number; }
  /// Says that a step has used it; step functions of memfit do so.
  void mark_stepped() const {
    if (window != nullptr) window->stepped = true;
  }
};

/// The element types that gradients and quantizer inputs may have.
enum class scalar_kind { fp32, bf16, fp16 };

namespace detail {

template <class E>
struct kind_of;
template <>
struct kind_of<float> {
  static constexpr auto value = scalar_kind::fp32;
};
template <>
struct kind_of<fp32> {
  static constexpr auto value = scalar_kind::fp32;
};
template <>
struct kind_of<bf16> {
  static constexpr auto value = scalar_kind::bf16;
};
template <>
struct kind_of<fp16> {
  static constexpr auto value = scalar_kind::fp16;
};

}  // namespace detail

/// Element types that memfit reads and writes.
template <class E>
concept scalar_element = requires {
  detail::kind_of<std::remove_const_t<E>>::value;
};

template <scalar_element E>
inline constexpr scalar_kind kind_of = detail::kind_of<std::remove_const_t<E>>::value;

MEMFIT_HD constexpr std::int64_t bytes_of(scalar_kind kind) {
  return kind == scalar_kind::fp32 ? 4 : 2;
}

/// A tensor to be read whose element type is known at run time.
struct scalar_view {
  void const* data = nullptr;
  scalar_kind kind = scalar_kind::fp32;
  std::int64_t count = 0;
  bool operator==(scalar_view const&) const = default;
};

/// Where one moment of one tensor lies: a code per element, a scale per block (null if unscaled).
struct moment_ref {
  void* codes = nullptr;
  void* scales = nullptr;  ///< floats, or bf16 where the format says so
};

/// One tensor's share of a step: `count` elements of every column, and this step's constants.
/// All memory is the executor's.
template <class Rule>
struct step_item {
  void* visible = nullptr;         ///< the parameter as the model reads it
  void* kept = nullptr;            ///< what the parameter column keeps beside it, or null
  void const* gradient = nullptr;  ///< null: the tensor takes no part
  scalar_kind gradient_kind = scalar_kind::fp32;
  std::int32_t group = 0;  ///< which of the step's rules it follows; below zero: it takes no part
  std::int64_t count = 0;
  moment_ref moments[slot_count<Rule> > 0 ? slot_count<Rule> : 1] = {};
  std::int64_t* steps = nullptr;  ///< the tensor's own step counter; null: it has none
  std::int64_t id = 0;            ///< keys the noise, with the seed and the step
  constants_of<Rule> constants;   ///< given where there is no counter, else set by begin
  noise_key key = {};             ///< likewise

  /// Elements that the step changes.
  MEMFIT_HD std::int64_t active() const { return gradient != nullptr && group >= 0 ? count : 0; }

  /// Counts a step of a tensor that takes part: its number, from 1; 0 where it does not. Of the
  /// parts of a window the first is the one that counts.
  MEMFIT_HD std::int64_t next_step(window_part const& part = {}) const {
    bool const absent = gradient == nullptr && count != 0;
    if (steps == nullptr || absent || group < 0) return 0;
    if (part.number == 0 || *steps == 0) ++*steps;
    return *steps;
  }
  /// Takes over what depends on the number of a step and on the part of a window.
  MEMFIT_HD void begin(constants_of<Rule> const& of_step, std::uint64_t seed, std::int64_t step,
                       window_part const& part = {}) {
    constants = detail::part_of<Rule>(of_step, part);
    key = part_key(make_noise_key(seed, step, id), part.number);
  }
};

/// How slot I of Rule is stored in Format.
template <class Rule, class Format, int I>
using slot_storage = storage<slot_format<Format, I>, Rule::slots[I].range, Rule::slots[I].scaling>;

/// The codec that Format gives to slot I of Rule.
template <class Rule, class Format, int I>
using slot_codec = typename slot_storage<Rule, Format, I>::codec;

/// Whether Format has a format for every slot of Rule.
template <class Rule, class Format>
concept stores_rule = format<Format> &&
    (detail::formats_in<Format> < 0 || detail::formats_in<Format> == slot_count<Rule>);

/// An executor: memory of its own kind, copies within it and from and to the host, and a driver in
/// member templates: `step<Rule, Format, Column>(item, gate)`, which takes the constants from the
/// item; `steps<Rule, Format, Column>()`, which makes a step_list; `quantize<Storage>` and
/// `dequantize<Storage>`; `sum<Column>(item, call)`, which adds one tensor to sums, and
/// `sums<Column>()`, which makes a sum_list; `norms()`, which makes a norm_list; and
/// `once(program)`, which calls a trivially copyable function object a single time, marked
/// MEMFIT_HD. All are ordered; copies from and to the host wait. Where it has
/// `allocate(bytes, memory_use)` besides, managers call that.
template <class E>
concept executor = std::copy_constructible<E> && requires(E const& e, void* p, void const* q) {
  { e.allocate(std::int64_t{1}) } -> std::same_as<buffer>;
  e.copy(p, q, std::int64_t{1});
  e.copy_from_host(p, q, std::int64_t{1});
  e.copy_to_host(p, q, std::int64_t{1});
  e.fill(p, static_cast<unsigned char>(0), std::int64_t{1});
};

namespace detail {

template <executor E>
buffer allocate(E const& exec, std::int64_t bytes, memory_use use) {
  if constexpr (requires { exec.allocate(bytes, use); })
    return exec.allocate(bytes, use);
  else
    return exec.allocate(bytes);
}

}  // namespace detail

}  // namespace memfit
