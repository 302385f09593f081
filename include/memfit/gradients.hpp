// Whole tensors on an executor: zeroing, copying, and the norm over all of them.
// Used between backward passes and the step.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/core/check.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/exec/list.hpp"

namespace memfit {

/// Sets every element of a tensor to zero. Ordered on the executor. Throws argument_error for null
/// data.
template <executor E, tensor T>
void zero(E const& exec, T&& t) {
  auto const r = ref(t);
  detail::require_data("zero", "the tensor", r.name, r);
  auto const bytes = r.count * static_cast<std::int64_t>(sizeof *r.data);
  detail::naming("zero", r.name, r.count, 1, [&] { exec.fill(r.data, 0, bytes); });
}

/// Copies a tensor to another one of the same count and element type, both in the executor's
/// memory. Ordered on the executor. Throws argument_error for null data, other counts and tensors
/// that overlap.
template <executor E, tensor From, tensor To>
void copy(E const& exec, From&& from, To&& to) {
  static_assert(std::is_same_v<element_of<From>, element_of<To>>,
                "memfit::copy: both tensors have one element type");
  auto const a = ref(from);
  auto const b = ref(to);
  detail::require_data("copy", "the source", a.name, a);
  detail::require_data("copy", "the target", b.name, b);
  detail::require_count("copy", "the target", b.name, b, a.count);
  detail::require_disjoint("copy", b.name, "the source", a, "the target", b);
  auto const bytes = a.count * static_cast<std::int64_t>(sizeof *a.data);
  detail::naming("copy", b.name, b.count, 1, [&] { exec.copy(b.data, a.data, bytes); });
}

/// The Euclidean norm over all elements of several tensors.
///
/// Squares and sums are those of doubles, in an order that depends on the tensors' counts alone: no
/// overflow for any fp32, bf16 or fp16, the same bits from every executor. On CUDA it takes some 24
/// bytes per 1,024 elements and 50 per tensor of the device's memory; on the host, for the time of
/// a call. Not finite where an element is not.
class global_norm {
 public:
  /// For tensors of the counts of these, in this order.
  template <executor E, tensors Tensors>
  global_norm(E const& exec, Tensors&& tensors) : norms_(made_on(exec)) {
    for (auto&& t : tensors) {
      auto const r = ref(t);
      detail::require_data("global_norm", "the tensor", r.name, r);
      detail::naming("global_norm", r.name, r.count, 1, [&] { norms_->add(r.count); });
      counts_.push_back(r.count);
    }
  }

  /// Computes the norm of tensors of these counts, fp32, bf16 or fp16. Returns where it will be, in
  /// the executor's memory; ordered on the executor. Throws argument_error before anything is done.
  template <tensors Tensors>
  double const* operator()(Tensors&& tensors) {
    std::vector<std::pair<void const*, scalar_kind>> places;
    for (auto&& t : tensors) {
      auto const r = ref(t);
      using element = element_of<decltype(t)>;
      static_assert(scalar_element<element>,
                    "memfit::global_norm: elements are fp32, bf16 or fp16");
      if (places.size() < counts_.size()) {
        detail::require_data("global_norm", "the tensor", r.name, r);
        detail::require_count("global_norm", "the tensor", r.name, r, counts_[places.size()]);
      }
      places.emplace_back(r.data, kind_of<element>);
    }
    if (places.size() != counts_.size())
      throw argument_error("memfit::global_norm: " + std::to_string(places.size()) +
                           " tensors for " + std::to_string(counts_.size()));
    for (std::size_t i = 0; i < places.size(); ++i)
      norms_->set(static_cast<std::int64_t>(i), places[i].first, places[i].second);
    double const* at = nullptr;
    naming_all([&] { at = norms_->compute(); });
    return at;
  }

  /// The last norm. Waits for the executor.
  double value_sync() const {
    double value = 0;
    naming_all([&] { value = norms_->value_sync(); });
    return value;
  }

 private:
  template <class E>
  static owner<norm_list> made_on(E const& exec) {
    owner<norm_list> norms;
    detail::naming("global_norm", "", 0, 0, [&] { norms = exec.norms(); });
    return norms;
  }
  template <class Work>
  void naming_all(Work const& work) const {
    detail::naming("global_norm", "", counts_.empty() ? 0 : counts_[0], std::ssize(counts_), work);
  }

  owner<norm_list> norms_;
  std::vector<std::int64_t> counts_;
};

}  // namespace memfit
