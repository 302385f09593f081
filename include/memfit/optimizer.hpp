// The optimizer: a rule, a state format and an executor over the user's own tensors.
// Used by training loops: register tensors once, then call step with their gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/core/check.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/exec/engine.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/rule/adaptive.hpp"
#include "memfit/rule/momentum.hpp"

namespace memfit {

/// What an optimizer does besides its rule and format.
struct optimizer_options {
  /// Tensors of at least this many elements have quantized moments, smaller ones fp32.
  std::int64_t min_quantized = 4096;
  /// Names of tensors whose moments stay fp32 whatever their size.
  std::vector<std::string> keep_fp32 = {};
  /// Keys the noise of stochastic parameter columns.
  std::uint64_t seed = 0;
};

/// One tensor as an optimizer holds it; bytes are those allocated.
struct tensor_description {
  std::string name;
  std::int64_t count = 0;
  bool quantized = false;            ///< its moments have the optimizer's format, else fp32
  std::int64_t parameter_bytes = 0;  ///< what the model reads; the user's own memory
  std::int64_t kept_bytes = 0;       ///< master copy or remainder beside it
  std::int64_t state_bytes = 0;      ///< codes and scales of all moments
  std::int64_t steps = 0;
};

/// All tensors of an optimizer, and the sums over them.
struct description {
  std::vector<tensor_description> tensors;
  std::int64_t parameter_bytes = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t state_bytes = 0;

  /// A table for people: a line per tensor, then the sums.
  std::string text() const {
    std::string out;
    for (auto const& t : tensors)
      out += line(t.name.empty() ? "(unnamed)" : t.name, t.quantized ? "quantized" : "fp32", t);
    tensor_description sum;
    for (auto const& t : tensors) sum.count += t.count;
    sum.parameter_bytes = parameter_bytes;
    sum.kept_bytes = kept_bytes;
    sum.state_bytes = state_bytes;
    return out + line("total", "", sum);
  }

 private:
  static std::string line(std::string text, char const* moments, tensor_description const& t) {
    auto column = [&text](std::string const& cell, std::size_t end) {
      text.resize((std::max)(text.size() + 1, end - (std::min)(end, cell.size())), ' ');
      text += cell;
    };
    column(moments, 34);
    column(std::to_string(t.count) + " elements", 54);
    column("parameters " + std::to_string(t.parameter_bytes) + " B", 80);
    column("kept " + std::to_string(t.kept_bytes) + " B", 100);
    column("states " + std::to_string(t.state_bytes) + " B", 122);
    return text + "\n";
  }
};

/// Updates registered tensors by Rule, keeping its moments in Format.
///
/// Param says how parameters are stored: fp32 (default), bf16, fp16, stochastic<bf16>, split<bf16>,
/// master<bf16>, master<fp16>. The tensors' memory stays the user's and must outlive the optimizer;
/// moments are the optimizer's, on the executor's device. Every tensor has its own step counter,
/// which only its own steps advance. Results do not depend on threads, vector units or on how a
/// step is divided. Movable, not copyable; not for use from several threads at once. All members
/// throw memfit::error before they change anything.
template <rule Rule, format Format, class Param = fp32>
class optimizer {
  using column = column_for<Param>;
  static_assert(parameter_column<column>,
                "memfit::optimizer: the third argument is a parameter column");

 public:
  using element = typename column::element;

  template <executor E>
  optimizer(E exec, Rule r, optimizer_options options = {})
      : rule_(r),
        options_(std::move(options)),
        engine_(std::make_unique<detail::engine_on<E, Rule, Format, column>>(std::move(exec))) {
    require_hyperparameters("optimizer");
    if (options_.min_quantized < 0)
      throw argument_error("memfit::optimizer: min_quantized is " +
                           std::to_string(options_.min_quantized));
    nonfinite_ = engine_->allocate(sizeof(std::uint64_t));
    engine_->fill(nonfinite_.data(), 0, nonfinite_.bytes());
  }

  /// Registers a range of tensors, in order.
  template <executor E, std::ranges::range Tensors>
  requires(tensor<std::ranges::range_reference_t<Tensors>>)
      optimizer(E exec, Rule r, Tensors&& parameters, optimizer_options options = {})
      : optimizer(std::move(exec), r, std::move(options)) {
    for (auto&& t : parameters) add(t);
  }

  /// Registers one tensor with zero moments and returns its index. A second buffer of the parameter
  /// column starts from the values the tensor has now.
  template <tensor T>
  std::size_t add(T&& parameter) {
    static_assert(scalar_element<element_of<T>>,
                  "memfit::optimizer: elements are fp32, bf16 or fp16");
    static_assert(kind_of<element_of<T>> == kind_of<element>,
                  "memfit::optimizer: the tensor's element type is not that of the Param column");
    auto const t = ref(parameter);
    static_assert(!std::is_const_v<typename decltype(ref(parameter))::element>,
                  "memfit::optimizer: a parameter is mutable");
    detail::require_data("optimizer::add", "the parameter", t.name, t);
    auto const where = detail::extent_of(t);
    require_unused("optimizer::add", t.name, "the parameter", where, t.count);
    if (!t.name.empty() && index_.contains(std::string(t.name)))
      detail::refuse("optimizer::add", t.name, "a tensor of this name is registered already");

    entry e;
    e.name = t.name;
    e.count = t.count;
    e.visible = t.data;
    e.quantized = t.count >= options_.min_quantized && !is_kept_fp32(t.name);
    e.moments = e.quantized ? fresh_moments<Format>(t.count) : fresh_moments<fp32>(t.count);
    e.kept = fresh_kept(e);
    entries_.reserve(entries_.size() + 1);
    if (!where.empty()) extents_.emplace(where.begin, std::pair(where.end, entries_.size()));
    if (!e.name.empty()) index_.emplace(e.name, entries_.size());
    entries_.push_back(std::move(e));
    return entries_.size() - 1;
  }

  /// Keeps the moments of the tensor of this name in fp32 from now on; before or after
  /// registration. Moments it already has keep their values.
  void keep_fp32(std::string_view name) {
    if (auto const found = index_.find(std::string(name)); found != index_.end()) {
      auto& e = entries_[found->second];
      if (e.quantized) {
        auto wide = fresh_moments<fp32>(e.count);
        for (int slot = 0; slot < slots; ++slot) {
          auto const values = moment(found->second, slot);
          engine_->copy_from_host(wide[slot_index(slot)].codes.data(), values.data(), e.count * 4);
        }
        options_.keep_fp32.emplace_back(name);
        e.moments = std::move(wide);
        e.quantized = false;
        return;
      }
    }
    options_.keep_fp32.emplace_back(name);
  }

  /// One step of every registered tensor; `gradients` runs parallel to them. An empty gradient
  /// (null data, no elements) leaves a tensor that has elements, and its counter, alone. An element
  /// whose gradient, new moment or new parameter is not finite keeps its parameter, and its moments
  /// up to their block's new scale. Ordered on the executor.
  template <std::ranges::range Gradients>
  requires(tensor<std::ranges::range_reference_t<Gradients>>) void step(Gradients&& gradients,
                                                                        gate g = {}) {
    require_hyperparameters("optimizer::step");
    work w;
    std::size_t i = 0;
    for (auto&& gradient : gradients) {
      if (i < entries_.size()) plan(w, "optimizer::step", i, ref(gradient));
      ++i;
    }
    if (i != entries_.size())
      throw argument_error("memfit::optimizer::step: " + std::to_string(i) + " gradients for " +
                           std::to_string(entries_.size()) + " tensors");
    run(w, g);
  }

  /// One step of one tensor: for sub-groups, and for gradients released as soon as they exist.
  template <tensor G>
  void step_one(std::size_t index, G&& gradient, gate g = {}) {
    require_hyperparameters("optimizer::step_one");
    require_index("optimizer::step_one", index);
    work w;
    plan(w, "optimizer::step_one", index, ref(gradient));
    run(w, g);
  }

  /// The hyper-parameters, to be changed between steps; step checks them.
  Rule& rule() { return rule_; }
  Rule const& rule() const { return rule_; }

  std::size_t size() const { return entries_.size(); }

  /// Steps that the tensor has taken.
  std::int64_t steps(std::size_t index) const {
    require_index("optimizer::steps", index);
    return entries_[index].steps;
  }

  /// Elements, over all steps, that were left as they were because their gradient or their new
  /// moment was not finite. Waits for the executor.
  std::uint64_t nonfinite_sync() const {
    std::uint64_t count = 0;
    engine_->copy_to_host(&count, nonfinite_.data(), sizeof count);
    return count;
  }

  /// The values of one moment, decoded on the host. Waits for the executor.
  std::vector<float> moment(std::size_t index, int slot) const {
    require_index("optimizer::moment", index);
    if (slot < 0 || slot >= slots)
      detail::refuse("optimizer::moment", entries_[index].name,
                     "slot " + std::to_string(slot) + " of " + std::to_string(slots));
    return decode_slot(entries_[index], slot, all_slots());
  }

  description describe() const {
    description d;
    for (auto const& e : entries_) {
      tensor_description t{
          e.name,         e.count, e.quantized, e.count * bytes_of(kind_of<element>),
          e.kept.bytes(), 0,       e.steps};
      for (auto const& m : e.moments) t.state_bytes += m.codes.bytes() + m.scales.bytes();
      d.parameter_bytes += t.parameter_bytes;
      d.kept_bytes += t.kept_bytes;
      d.state_bytes += t.state_bytes;
      d.tensors.push_back(std::move(t));
    }
    return d;
  }

 private:
  static constexpr int slots = slot_count<Rule>;
  static constexpr auto all_slots() { return std::make_integer_sequence<int, slots>(); }
  static constexpr std::size_t slot_index(int slot) { return static_cast<std::size_t>(slot); }

  struct moment_buffers {
    buffer codes, scales;
  };
  using moments_array = std::array<moment_buffers, slot_index(slots)>;

  struct entry {
    std::string name;
    std::int64_t count = 0;
    void* visible = nullptr;
    buffer kept;
    moments_array moments;
    bool quantized = false;
    std::int64_t steps = 0;
  };

  /// A step that has been checked but not run.
  struct work {
    std::vector<step_item<Rule>> quantized, exact;
    std::vector<std::size_t> stepped;
  };

  void require_hyperparameters(char const* call) const {
    char const* const bad = invalid_hyperparameter(rule_);
    if (bad == nullptr) return;
    std::int64_t elements = 0;
    for (auto const& e : entries_) elements += e.count;
    throw hyperparameter_error(
        "memfit::" + std::string(call) + ": " + bad + " is out of range or not finite (" +
        std::to_string(entries_.size()) + " tensors, " + std::to_string(elements) + " elements)");
  }
  void require_index(char const* call, std::size_t index) const {
    if (index >= entries_.size())
      throw argument_error("memfit::" + std::string(call) + ": tensor " + std::to_string(index) +
                           " of " + std::to_string(entries_.size()));
  }
  /// Refuses memory that a registered parameter occupies.
  void require_unused(char const* call, std::string_view name, char const* what,
                      detail::extent const& where, std::int64_t count) const {
    if (where.empty()) return;
    auto next = extents_.lower_bound(where.end);
    if (next == extents_.begin()) return;
    auto const& [other_end, other] = std::prev(next)->second;
    if (other_end > where.begin)
      detail::refuse(call, name,
                     std::string(what) + " of " + std::to_string(count) +
                         " elements overlaps the registered parameter " + entries_[other].name +
                         " (number " + std::to_string(other) + ")");
  }
  bool is_kept_fp32(std::string_view name) const {
    return !name.empty() && std::ranges::find(options_.keep_fp32, name) != options_.keep_fp32.end();
  }

  template <class F>
  moments_array fresh_moments(std::int64_t count) const {
    return fresh_moments<F>(count, all_slots());
  }
  template <class F, int... I>
  moments_array fresh_moments([[maybe_unused]] std::int64_t count,
                              std::integer_sequence<int, I...>) const {
    return {fresh_moment<slot_codec<Rule, F, I>>(count,
                                                 format_traits<F, Rule::slots[I].range>::block)...};
  }
  template <class C>
  moment_buffers fresh_moment(std::int64_t count, int block) const {
    static_assert(C::zero == 0 || sizeof(typename C::code) == 1);
    moment_buffers m;
    m.codes = engine_->allocate(count * static_cast<std::int64_t>(sizeof(typename C::code)));
    engine_->fill(m.codes.data(), static_cast<unsigned char>(C::zero), m.codes.bytes());
    if constexpr (C::scaled) {
      m.scales = engine_->allocate(block_count(count, block) * 4);
      engine_->fill(m.scales.data(), 0, m.scales.bytes());
    }
    return m;
  }

  buffer fresh_kept(entry const& e) const {
    using kept = typename column::kept;
    if constexpr (!std::is_void_v<kept>) {
      std::vector<typename column::code> seen(static_cast<std::size_t>(e.count));
      engine_->copy_to_host(seen.data(), e.visible, e.count * bytes_of(kind_of<element>));
      std::vector<kept> values(seen.size());
      for (std::size_t i = 0; i < seen.size(); ++i) {
        float const x = column::decode_visible(std::uint32_t{seen[i]});
        values[i] = static_cast<kept>(column::encode(x, 0u).kept);
      }
      auto const bytes = e.count * static_cast<std::int64_t>(sizeof(kept));
      buffer b = engine_->allocate(bytes);
      engine_->copy_from_host(b.data(), values.data(), bytes);
      return b;
    } else {
      return {};
    }
  }

  template <class E>
  void plan(work& w, char const* call, std::size_t index, tensor_ref<E> const& gradient) const {
    static_assert(scalar_element<E>, "memfit::optimizer: gradients are fp32, bf16 or fp16");
    auto const& e = entries_[index];
    if (gradient.data == nullptr && gradient.count == 0 && e.count != 0) return;
    detail::require_data(call, "the gradient", e.name, gradient);
    detail::require_count(call, "the gradient", e.name, gradient, e.count);
    require_unused(call, e.name, "the gradient", detail::extent_of(gradient), gradient.count);
    auto& items = e.quantized ? w.quantized : w.exact;
    step_item<Rule> item{};
    item.visible = e.visible;
    item.kept = e.kept.data();
    item.gradient = gradient.data;
    item.gradient_kind = kind_of<E>;
    item.count = e.count;
    for (int slot = 0; slot < slots; ++slot)
      item.moments[slot] = {e.moments[slot_index(slot)].codes.data(),
                            static_cast<float*>(e.moments[slot_index(slot)].scales.data())};
    item.constants = rule_.at(e.steps + 1);
    item.key = make_noise_key(options_.seed, e.steps + 1, static_cast<std::int64_t>(index));
    items.push_back(item);
    w.stepped.push_back(index);
  }

  void run(work const& w, gate g) {
    bool const happened =
        engine_->step(w.quantized.data(), std::ssize(w.quantized), w.exact.data(),
                      std::ssize(w.exact), g, static_cast<std::uint64_t*>(nonfinite_.data()));
    for (auto i : w.stepped) entries_[i].steps += happened ? 1 : 0;
  }

  template <int... I>
  std::vector<float> decode_slot(entry const& e, int slot, std::integer_sequence<int, I...>) const {
    std::vector<float> out(static_cast<std::size_t>(e.count));
    ((I == slot ? (e.quantized ? decode<Format, I>(e, out) : decode<fp32, I>(e, out)) : void()),
     ...);
    return out;
  }
  template <class F, int I>
  void decode(entry const& e, std::vector<float>& out) const {
    using C = slot_codec<Rule, F, I>;
    constexpr int block = format_traits<F, Rule::slots[I].range>::block;
    auto const& m = e.moments[I];
    std::vector<typename C::code> codes(out.size());
    std::vector<float> scales(static_cast<std::size_t>(m.scales.bytes() / 4));
    engine_->copy_to_host(codes.data(), m.codes.data(), m.codes.bytes());
    engine_->copy_to_host(scales.data(), m.scales.data(), m.scales.bytes());
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = detail::moment_value<C, Rule::slots[I].range>(
          std::uint32_t{codes[i]}, C::scaled ? scales[i / static_cast<std::size_t>(block)] : 1.0f);
  }

  Rule rule_;
  optimizer_options options_;
  std::unique_ptr<detail::engine<Rule, Format, column>> engine_;
  buffer nonfinite_;
  std::vector<entry> entries_;
  std::map<std::string, std::size_t> index_;
  // begin -> end and index of registered parameters
  std::map<std::uintptr_t, std::pair<std::uintptr_t, std::size_t>> extents_;
};

}  // namespace memfit
