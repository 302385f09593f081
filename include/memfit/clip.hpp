// Clipping by the norm of the gradients: against a limit, or against the norms of past steps.
// Used between unscaling and the step; makes a gate from a gate and writes no gradient.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "memfit/core/check.hpp"
#include "memfit/core/owner.hpp"
#include "memfit/core/scalar.hpp"
#include "memfit/exec/machine.hpp"

namespace memfit {

namespace detail {

/// Norms that a percentile is taken of.
inline constexpr int norms_kept = 100;

/// What clipping keeps on the device.
struct clip_numbers {
  double norm;  // of the last gradients, multiplied
  float multiplier;
  std::uint32_t skip;
  std::int32_t count, next;
  double past[norms_kept];    // as they came, `next` is the oldest once all are there
  double sorted[norms_kept];  // the same, in ascending order

  /// Takes the gate in; whether the norm counts.
  MEMFIT_HD bool enter(double raw, gate const& g) {
    multiplier = g.multiplier != nullptr ? *g.multiplier : 1.0f;
    skip = g.skip != nullptr ? *g.skip : 0u;
    norm =
        raw * (multiplier < 0 ? -static_cast<double>(multiplier) : static_cast<double>(multiplier));
    if (skip == 0 && !is_finite(norm)) skip = skip_nonfinite;
    return skip == 0;
  }
  MEMFIT_HD void limit(double most) {
    if (norm > most)
      multiplier = static_cast<float>(static_cast<double>(multiplier) * (most / norm));
  }
  /// Puts the norm among the past ones, in place of the oldest.
  MEMFIT_HD void remember() {
    int at = count;
    if (count < norms_kept)
      ++count;
    else
      for (at = 0; sorted[at] != past[next];) ++at;
    for (; at > 0 && sorted[at - 1] > norm; --at) sorted[at] = sorted[at - 1];
    for (; at + 1 < count && sorted[at + 1] < norm; ++at) sorted[at] = sorted[at + 1];
    sorted[at] = norm;
    past[next] = norm;
    next = next + 1 < norms_kept ? next + 1 : 0;
  }
};

struct clip_to_limit {
  clip_numbers* now;
  double const* norm;
  gate g;
  double most;
  MEMFIT_HD void operator()() const {
    if (now->enter(*norm, g)) now->limit(most);
  }
};

struct clip_to_percentile {
  clip_numbers* now;
  double const* norm;
  gate g;
  double percentile;
  MEMFIT_HD void operator()() const {
    if (!now->enter(*norm, g)) return;
    now->remember();
    auto const rank = static_cast<std::int32_t>(percentile * now->count / 100);
    now->limit(now->sorted[rank < now->count ? rank : now->count - 1]);
  }
};

}  // namespace detail

/// Clips gradients by their norm: a gate in, a gate out, whose multiplier brings a norm above the
/// limit down to it. Nothing else changes: the gradients are not written, smaller norms keep their
/// multiplier bit for bit.
///
/// The norm is that of the gradients as they lie in memory and lies itself in the executor's
/// memory, as global_norm and sharded_norm give it; it is multiplied as the gate says before it is
/// compared, so that limits are in the units of unscaled gradients. A norm that is not finite makes
/// the gate skip; one of zero is fine. Groups that are clipped apart have a clipper each. Ordered
/// on the executor, waits for nothing, can be captured; the same bits from every executor. A gate
/// stays good until the same clipper clips again. It takes 1,624 bytes of the executor's memory.
/// Movable, not copyable.
class norm_clipper {
 public:
  template <detail::executor_for<norm_clipper> E>
  explicit norm_clipper(E const& exec)
      : machine_(detail::new_machine<detail::clip_to_limit, detail::clip_to_percentile>(exec)) {
    naming("norm_clipper", [&] { numbers_ = machine_->zeroed(sizeof(detail::clip_numbers)); });
  }

  /// Clips to norm `most`, above 0; infinity only measures. Throws hyperparameter_error for others,
  /// order_error for a gate of an earlier window.
  gate limit(double const* norm, gate const& g, double most) {
    require_usable("norm_clipper::limit", norm, g, most > 0, "the largest norm", most);
    return run("norm_clipper::limit", detail::clip_to_limit{numbers(), norm, g, most}, g);
  }

  /// Clips to a percentile, above 0 and at most 100, of the last 100 norms that did not skip, this
  /// one included: the smallest of them that is above so many percent of them. The first step is
  /// never clipped.
  gate percentile(double const* norm, gate const& g, double percent) {
    require_usable("norm_clipper::percentile", norm, g, percent > 0 && percent <= 100,
                   "the percentile", percent);
    return run("norm_clipper::percentile", detail::clip_to_percentile{numbers(), norm, g, percent},
               g);
  }

  /// The last norm, multiplied as the gate it came with says, before clipping. Waits.
  double norm_sync() const {
    double norm = 0;
    naming("norm_clipper::norm_sync",
           [&] { machine_->copy_to_host(&norm, &numbers()->norm, sizeof norm); });
    return norm;
  }
  /// Where that norm lies, in the executor's memory.
  double const* norm() const { return &numbers()->norm; }

  /// All that it knows: the last norm, then those that percentiles are taken of, the oldest first.
  /// Waits.
  std::vector<double> norms_sync() const {
    detail::clip_numbers n{};
    naming("norm_clipper::norms_sync",
           [&] { machine_->copy_to_host(&n, numbers_.data(), sizeof n); });
    std::vector<double> norms{n.norm};
    for (int i = 0; i < n.count; ++i)
      norms.push_back(n.past[n.count < detail::norms_kept ? i : (n.next + i) % n.count]);
    return norms;
  }
  /// Goes on from such numbers. Throws argument_error where there are none or too many, or a past
  /// one is negative or not finite. Waits.
  void load(std::vector<double> const& norms) {
    detail::clip_numbers n{};
    if (norms.empty() || norms.size() > detail::norms_kept + 1)
      throw argument_error("memfit::norm_clipper::load: " + std::to_string(norms.size()) +
                           " norms");
    for (std::size_t i = 1; i < norms.size(); ++i) {
      n.norm = norms[i];
      if (!(n.norm >= 0) || !is_finite(n.norm))
        throw argument_error("memfit::norm_clipper::load: norm " + std::to_string(i) + " is " +
                             std::to_string(n.norm));
      n.remember();
    }
    n.norm = norms[0];
    naming("norm_clipper::load", [&] { machine_->copy_from_host(numbers_.data(), &n, sizeof n); });
  }

 private:
  detail::clip_numbers* numbers() const {
    return static_cast<detail::clip_numbers*>(numbers_.data());
  }
  static void require_usable(char const* call, double const* norm, gate const& g, bool good,
                             char const* what, double value) {
    if (norm == nullptr) throw argument_error("memfit::" + std::string(call) + ": null norm");
    if (!good)
      throw hyperparameter_error("memfit::" + std::string(call) + ": " + what + " is " +
                                 std::to_string(value));
    detail::require_current(call, g);
  }
  template <class Program>
  gate run(char const* call, Program const& program, gate g) {
    naming(call, [&] { machine_->run(program); });
    g.multiplier = &numbers()->multiplier;
    g.skip = &numbers()->skip;
    return g;
  }
  template <class Work>
  static void naming(char const* call, Work const& work) {
    detail::naming(call, "the norm", 1, 1, work);
  }

  owner<detail::machine<detail::clip_to_limit, detail::clip_to_percentile>> machine_;
  buffer numbers_;
};

/// A gate under which no element of the gradient counts as more than `most` in magnitude, after
/// unscaling and after clipping by norm, whose norm is that before. The step does it as it loads
/// the gradients; on CUDA such a step computes every element twice. An element that is not finite
/// is not clipped. Throws hyperparameter_error unless
/// `most` is above 0, order_error for a gate of an earlier window.
inline gate clip_value(gate g, float most) {
  if (!(most > 0))
    throw hyperparameter_error("memfit::clip_value: the largest magnitude is " +
                               std::to_string(most));
  detail::require_current("clip_value", g);
  if (most < g.limit) g.limit = most;
  return g;
}

/// What clip_norm and clip_percentile take: sums with a norm and a clipper of their own.
template <class A>
concept clippable = requires(A& a) {
  { a.norm() } -> std::same_as<double const*>;
  { a.clipper() } -> std::same_as<norm_clipper&>;
};

/// Clips a window's gradients to norm `most`; see norm_clipper::limit.
template <clippable A>
gate clip_norm(A& sums, gate const& g, double most) {
  return sums.clipper().limit(sums.norm(), g, most);
}

/// Clips a window's gradients to a percentile of past norms; see norm_clipper::percentile.
template <clippable A>
gate clip_percentile(A& sums, gate const& g, double percent) {
  return sums.clipper().percentile(sums.norm(), g, percent);
}

}  // namespace memfit
