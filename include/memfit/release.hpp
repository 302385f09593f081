// Gradients that are stepped with as soon as they are complete, so that one stage's memory serves
// for all; windows of several micro-batches join the moments instead of sums.
// Used in backward passes, over an optimizer, in place of its step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/core/check.hpp"
#include "memfit/core/owner.hpp"
#include "memfit/core/scalar.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/exec/list.hpp"
#include "memfit/exec/machine.hpp"
#include "memfit/scaler.hpp"

namespace memfit {

/// Micro-batches of a folded window that formats with scales of 16 bits bear; see
/// gradient_release::micro_batch.
inline constexpr std::int64_t most_folded_in_narrow_scales = 8;

struct release_options {
  /// The norm to clip to, judged by what is known when a stage is stepped; infinity does not clip.
  double clip_norm = std::numeric_limits<double>::infinity();
  /// Measures norms also where there is neither clipping nor a loss scale.
  bool measure = false;
};

namespace detail {

/// A window of released gradients on the device.
struct release_numbers {
  double squares;  // so far, each micro-batch by its share, as the gradients lie in memory
  double norm;     // of the last window that was whole, unscaled; 0: of none yet
  float inverse;   // of the loss scale
  gate_numbers gate;
  std::uint32_t nonfinite;

  MEMFIT_HD double norm_so_far() const {
    return product(sqrt(squares), static_cast<double>(inverse));
  }
};

struct begin_release {
  release_numbers* now;
  float const* scale;
  MEMFIT_HD void operator()() const {
    now->squares = 0;
    now->nonfinite = 0;
    now->inverse = scale != nullptr ? static_cast<float>(1.0 / static_cast<double>(*scale)) : 1.0f;
    now->gate = {now->inverse, 0};
  }
};

/// Looks at a stage's norm before it is stepped, and makes its gate: unscales and clips.
struct measure_release {
  release_numbers* now;
  double const* norm;
  double share, limit;
  MEMFIT_HD void operator()() const {
    if (!is_finite(*norm)) now->gate.skip = now->nonfinite = skip_nonfinite;
    if (now->gate.skip != 0) return;
    now->squares += product(share, product(*norm, *norm));
    double const so_far = now->norm_so_far();
    double const most = so_far > now->norm ? so_far : now->norm;
    double const clip = most > limit ? limit / most : 1.0;
    now->gate.multiplier = static_cast<float>(product(static_cast<double>(now->inverse), clip));
  }
};

/// Ends a window, whose norm is the next one's reference if nothing was skipped.
struct end_release {
  release_numbers* now;
  bool measured;
  MEMFIT_HD void operator()() const {
    if (measured && now->nonfinite == 0) now->norm = now->norm_so_far();
  }
};

class release_engine : public machine<begin_release, measure_release, end_release> {
 public:
  virtual owner<norm_list> norms() const = 0;
};

template <class E>
class release_engine_on final
    : public machine_on<E, release_engine, begin_release, measure_release, end_release> {
 public:
  explicit release_engine_on(E const& exec)
      : machine_on<E, release_engine, begin_release, measure_release, end_release>(exec) {}
  owner<norm_list> norms() const override { return this->exec_.norms(); }
};

}  // namespace detail

/// Steps each stage's parameters as soon as its gradients are complete: `stepping` is an optimizer,
/// or what has its size, count, folds, check_some and step_some, and outlives this.
///
///     release.begin(scaler.scale());              // or begin(), without a loss scale
///     backward(model, [&](stage& s) { release.complete(s.first_parameter, s.gradients); });
///     scaler.update(release.finish(scaler));      // or finish()
///
/// After complete, whatever is ordered behind it on the executor may overwrite the gradients: the
/// memory of one stage is enough for a whole model. A tensor that several stages contribute to is
/// completed once, after the last of them. Without clipping and without a loss scale that is
/// exactly the step of all tensors at once, bit for bit. What else is on changes the mathematics:
///
/// - Clipping: the norm of a window is known when all its stages are stepped. A stage is clipped by
///   the norm of the last window or by that of this one so far, whichever is larger: multiplied by
///   min(1, clip_norm / that). So no stage's gradient counts as more than clip_norm, and the mean
///   of a folded window as less than twice that; in the first window, for which load() can give a
///   norm, earlier stages are clipped less than later ones. Frozen tensors count where they are
///   given gradients.
/// - A loss scale or clipping: a stage with a gradient that is not finite skips itself and all
///   later stages of its window, and the scaler backs off; earlier ones stay stepped, where the
///   optimizer's step would skip all. The norm of such a window is no later window's reference.
/// - Several micro-batches (begin_folded), for rules that fold: see micro_batch.
///
/// Ordered on the executor, waits for nothing; a window can be captured in a graph once a window
/// with stages of the same counts has gone before. The same bits from every executor. It takes 32
/// bytes of the executor's memory and, where it measures, what global_norm takes, for one of the
/// stages that have the same counts. Movable, not copyable; not for use from several threads at
/// once. Members throw before they change anything.
template <class Optimizer>
class gradient_release {
 public:
  /// Throws hyperparameter_error unless clip_norm is above 0. Waits for the executor.
  template <executor E>
  gradient_release(E const& exec, Optimizer& stepping, release_options options = {})
      : stepping_(&stepping), options_(options), engine_(new detail::release_engine_on<E>(exec)) {
    if (!(options.clip_norm > 0))
      throw hyperparameter_error("memfit::gradient_release: the norm to clip to is " +
                                 std::to_string(options.clip_norm));
    naming("gradient_release",
           [&] { numbers_ = engine_->zeroed(sizeof(detail::release_numbers)); });
  }

  /// Begins a window of one micro-batch whose loss is multiplied by *scale, in the executor's
  /// memory; null: by 1. Throws order_error within a window.
  void begin(float const* scale = nullptr) {
    open("gradient_release::begin", 0, scale);
    share_ = 1;
    last_ = ++micro_batch_;
  }

  /// Begins a window of so many items (tokens, samples) in several micro-batches, none of whose
  /// gradients is kept: micro_batch comes before each. Throws order_error within a window, and
  /// argument_error for less than one item.
  void begin_folded(std::int64_t items, float const* scale = nullptr) {
    if (items < 1)
      throw argument_error("memfit::gradient_release::begin_folded: a window of " +
                           std::to_string(items) + " items");
    open("gradient_release::begin_folded", items, scale);
  }

  /// The gradients to come are means over a micro-batch of so many items; with none they do not
  /// count, whatever they hold.
  ///
  /// The moments take them one by one (after Adam accumulation, arXiv 2305.19982): at the window's
  /// first gradient of a tensor they decay and the step counter moves; each adds its share of the
  /// items of the window; the last one moves the parameter. The first moment is that of the
  /// window's mean gradient, up to rounding. The second one takes the mean of the micro-batches'
  /// squares, where the step with sums takes the square of their mean: it is larger by the variance
  /// between micro-batches, and updates are smaller, by up to the root of the number of
  /// micro-batches where gradients are mostly noise. Where micro-batches agree there is no
  /// difference. (The paper squares each gradient's share of the sum, which is the other way round:
  /// as with sums for noise, and larger updates where micro-batches agree.) The window's norm is
  /// the root of the mean of the micro-batches' squared norms.
  ///
  /// Moments are rounded once for each micro-batch. Formats with scales of 16 bits (root8,
  /// companded8, packed4) round these up every time, by up to 1/128, which the decay of a window
  /// has to outweigh: with beta2 = 0.95 and gradients of root8 that are mostly noise, second
  /// moments were on average 5 % too large in windows of 4 micro-batches and 3.6 times as large in
  /// windows of 16, and grew without end in windows of 64. Keep such
  /// windows to most_folded_in_narrow_scales, or the moments in another format.
  ///
  /// Throws order_error outside a folded window and for more items than it has.
  void micro_batch(std::int64_t items) {
    static_assert(Optimizer::folds,
                  "memfit::gradient_release: this rule does not fold the gradients of "
                  "micro-batches into its moments (adam, adamw and radam do): sum them with "
                  "gradient_accumulator");
    if (!open_ || items_ == 0)
      throw order_error("memfit::gradient_release::micro_batch: begin_folded comes first");
    if (items < 0 || items > items_ - done_)
      throw order_error("memfit::gradient_release::micro_batch: " + std::to_string(items) +
                        " items after " + std::to_string(done_) + " of the window's " +
                        std::to_string(items_));
    done_ += items;
    share_ = static_cast<double>(items) / static_cast<double>(items_);
    ++micro_batch_;
    if (items > 0) last_ = micro_batch_;
  }

  /// Steps these tensors of the optimizer; the gradients are fp32, bf16 or fp16, one for each. An
  /// empty gradient (null data, no elements) leaves its tensor alone. Throws order_error outside a
  /// micro-batch and for a tensor that it has completed already, and what step_some throws.
  template <tensors Gradients>
  void complete(std::vector<std::size_t> const& indices, Gradients&& gradients) {
    views_.clear();
    for (auto&& gradient : gradients) {
      auto const g = ref(gradient);
      using E = typename decltype(ref(gradient))::element;
      static_assert(scalar_element<E>,
                    "memfit::gradient_release: gradients are fp32, bf16 or fp16");
      views_.push_back({g.data, kind_of<E>, g.count});
    }
    complete(indices, views_);
  }
  /// The same for tensors that were registered one after another, from this one on.
  template <tensors Gradients>
  void complete(std::size_t first, Gradients&& gradients) {
    following_.clear();
    for (auto it = std::begin(gradients); it != std::end(gradients); ++it)
      following_.push_back(first + following_.size());
    complete(following_, gradients);
  }
  /// The same with gradients whose element types are known at run time.
  void complete(std::vector<std::size_t> const& indices,
                std::vector<scalar_view> const& gradients) {
    require_micro_batch();
    stepping_->check_some(indices, gradients);
    tensors_.resize(stepping_->size());
    for (auto const i : indices)
      if (tensors_[i].completed == micro_batch_)
        throw order_error("memfit::gradient_release::complete: tensor " + std::to_string(i) +
                          " is complete already in this micro-batch");
    if (share_ == 0) return;
    if (measures_) measure(gradients);
    step(indices, gradients);
  }

  /// Ends the window. Throws order_error outside one, before a folded window has all its items, and
  /// where a tensor had part in it but not in its last micro-batch with items.
  void finish() { close(); }

  /// Ends a window that will not be finished, as after an exception in the backward pass; nothing
  /// happens outside one. What was stepped stays stepped; the norm is no later window's reference.
  void abandon() { open_ = false; }

  /// Ends the window and returns its gate for scaler.update, which comes next.
  gate finish(loss_scaler& scaler) {
    require_whole();
    gate const g = scaler.unscale(*this);
    g.mark_stepped();
    return g;
  }

  /// Ends the window; what loss_scaler::unscale calls, after which the flag of nonfinite() lies in
  /// the executor's memory.
  gate close() {
    require_whole();
    naming("gradient_release::finish", [&] {
      engine_->run(detail::end_release{numbers(), measures_});
    });
    open_ = false;
    return {&numbers()->gate.multiplier, &numbers()->gate.skip};
  }
  std::uint32_t const* nonfinite() const { return &numbers()->nonfinite; }

  /// The norm of the last window that was measured and whole, unscaled, before clipping; 0 where
  /// there is none. Waits.
  double norm_sync() const {
    double norm = 0;
    naming("gradient_release::norm_sync",
           [&] { engine_->copy_to_host(&norm, &numbers()->norm, sizeof norm); });
    return norm;
  }
  /// The next window is clipped by this norm, at least; 0: by its own so far alone. Throws
  /// argument_error for a norm that is negative or not finite, order_error within a window. Waits.
  void load(double norm) {
    require_between("gradient_release::load");
    if (!(norm >= 0) || !is_finite(norm))
      throw argument_error("memfit::gradient_release::load: a norm of " + std::to_string(norm));
    naming("gradient_release::load",
           [&] { engine_->copy_from_host(&numbers()->norm, &norm, sizeof norm); });
  }
  /// Throws order_error within a window.
  void require_between(char const* call) const {
    if (open_)
      throw order_error("memfit::" + std::string(call) +
                        ": the window is open: finish comes first");
  }

 private:
  /// What the host knows of a tensor: counted micro-batches tell the windows apart.
  struct progress {
    std::uint64_t completed = 0;  // the latest micro-batch that did
    std::int64_t parts = 0;       // of the window of that one
  };
  struct stage_norm {
    std::vector<std::int64_t> counts;
    owner<norm_list> norm;
  };

  detail::release_numbers* numbers() const {
    return static_cast<detail::release_numbers*>(numbers_.data());
  }
  template <class Work>
  void naming(char const* call, Work const& work) const {
    detail::naming(call, "the window", 1, 1, work);
  }

  void open(char const* call, std::int64_t items, float const* scale) {
    require_between(call);
    bool const clips = options_.clip_norm < std::numeric_limits<double>::infinity();
    naming(call, [&] { engine_->run(detail::begin_release{numbers(), scale}); });
    measures_ = clips || scale != nullptr || options_.measure;
    items_ = items;
    done_ = 0;
    first_ = micro_batch_ + 1;
    open_ = true;
  }
  void require_micro_batch() const {
    if (!open_ || micro_batch_ < first_)
      throw order_error(
          std::string("memfit::gradient_release::complete: ") +
          (open_ ? "micro_batch comes first" : "there is no window: begin comes first"));
  }
  void require_whole() const {
    if (!open_)
      throw order_error("memfit::gradient_release::finish: there is no window: begin comes first");
    if (done_ < items_)
      throw order_error("memfit::gradient_release::finish: " + std::to_string(done_) + " of " +
                        std::to_string(items_) + " items have come");
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (parts_of(i) != 0 && tensors_[i].completed < last_)
        throw order_error("memfit::gradient_release::finish: tensor " + std::to_string(i) +
                          " had part in the window, but the last micro-batch has not completed it");
  }
  std::int64_t parts_of(std::size_t i) const {
    return tensors_[i].completed >= first_ ? tensors_[i].parts : 0;
  }

  void measure(std::vector<scalar_view> const& gradients) {
    counts_.clear();
    for (auto const& g : gradients) counts_.push_back(g.data != nullptr ? g.count : 0);
    naming("gradient_release::complete", [&] {
      auto& list = norm_for(counts_);
      for (std::size_t i = 0; i < gradients.size(); ++i)
        list.set(static_cast<std::int64_t>(i), gradients[i].data, gradients[i].kind);
      engine_->run(detail::measure_release{numbers(), list.compute(), share_, options_.clip_norm});
    });
  }
  /// Stages of the same counts share what their norm takes.
  norm_list& norm_for(std::vector<std::int64_t> const& counts) {
    for (auto const& s : norms_)
      if (s.counts == counts) return *s.norm;
    stage_norm fresh{counts, engine_->norms()};
    for (auto const n : counts) fresh.norm->add(n);
    norms_.push_back(std::move(fresh));
    return *norms_.back().norm;
  }

  /// Tensors that have had as many parts of the window as their neighbours go together.
  void step(std::vector<std::size_t> const& indices, std::vector<scalar_view> const& gradients) {
    for (std::size_t i = 0, end = 0; i < indices.size(); i = end) {
      auto const number = parts_of(indices[i]);
      for (end = i + 1; end < indices.size() && parts_of(indices[end]) == number;) ++end;
      alike_.assign(indices.data() + i, indices.data() + end);
      alike_gradients_.assign(gradients.data() + i, gradients.data() + end);
      step_alike(number);
    }
  }
  void step_alike(std::int64_t number) {
    gate const g = measures_ ? gate{&numbers()->gate.multiplier, &numbers()->gate.skip} : gate{};
    if constexpr (Optimizer::folds)
      stepping_->step_some(alike_, alike_gradients_, g,
                           {number, static_cast<float>(share_), done_ == items_});
    else
      stepping_->step_some(alike_, alike_gradients_, g);
    for (std::size_t i = 0; i < alike_.size(); ++i)
      if (alike_gradients_[i].data != nullptr || stepping_->count(alike_[i]) == 0)
        tensors_[alike_[i]] = {micro_batch_, number + 1};
  }

  Optimizer* stepping_;
  release_options options_;
  owner<detail::release_engine> engine_;
  buffer numbers_;
  std::vector<stage_norm> norms_;
  bool open_ = false, measures_ = false;
  std::int64_t items_ = 0, done_ = 0;   // of the window; both 0 for a window of one micro-batch
  double share_ = 1;                    // of the micro-batch in it
  std::uint64_t micro_batch_ = 0;       // counts all that there ever were
  std::uint64_t first_ = 1, last_ = 0;  // of the window; the one that ends it
  std::vector<progress> tensors_;
  std::vector<scalar_view> views_, alike_gradients_;
  std::vector<std::size_t> following_, alike_;
  std::vector<std::int64_t> counts_;
};

}  // namespace memfit
