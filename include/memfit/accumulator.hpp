// Sums the gradients of a window of micro-batches, weighted so that unequal ones are right.
// Used between backward passes and the step; the sums are the tensors that the optimizer steps
// with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/clip.hpp"
#include "memfit/codec/column.hpp"
#include "memfit/core/check.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/exec/list.hpp"
#include "memfit/exec/machine.hpp"
#include "memfit/fit/sums.hpp"
#include "memfit/gradients.hpp"
#include "memfit/parallel/communicator.hpp"

namespace memfit {

/// How many items (tokens, samples) a micro-batch has: a number, or where the executor will find
/// one in its memory, for counts that only the device knows or that a captured graph varies.
struct item_count {
  double value = 0;
  float const* at = nullptr;
  template <class N>
  requires std::is_arithmetic_v<N> item_count(N n) : value(static_cast<double>(n)) {}
  item_count(float const* place) : at(place) {}
};

/// What becomes of gradients once they are added.
enum class after_add { keep, zero };

struct accumulator_options {
  /// Keys the noise of stochastic sums.
  std::uint64_t seed = 0;
};

namespace detail {

/// A window on the device.
struct window_numbers {
  double items;       // so far
  std::int64_t draw;  // number of the latest addition
  float weight;       // of the latest addition
  std::uint32_t nonfinite;
  gate_numbers gate;
};

/// Counts a micro-batch, and finds the weight of its gradients.
struct count_program {
  window_numbers* now;
  item_count items;
  bool first, are_means;

  MEMFIT_HD void operator()() const {
    double n = items.at != nullptr ? static_cast<double>(*items.at) : items.value;
    if (!(n > 0)) n = 0;
    if (first) {
      now->items = 0;
      now->nonfinite = 0;
    }
    now->items += n;
    now->weight = n > 0 ? (are_means ? static_cast<float>(n) : 1.0f) : 0.0f;
    ++now->draw;
  }
};

/// Ends a window: writes its gate, and looks at the norm where no addition looked at the sums.
struct close_program {
  window_numbers* now;
  double const* norm;  // null: the flag is right
  bool empty;

  MEMFIT_HD void operator()() const {
    if (empty) {
      now->items = 0;
      now->nonfinite = 0;
    } else if (norm != nullptr && !is_finite(*norm)) {
      now->nonfinite = 1;
    }
    bool const some = now->items > 0;
    now->gate.multiplier = some ? static_cast<float>(1.0 / now->items) : 0.0f;
    now->gate.skip = some ? 0u : skip_empty;
  }
};

class window_engine : public machine<count_program, close_program> {
 public:
  owner<sum_list> sums;
};

template <class E, class Column>
class window_engine_on final : public machine_on<E, window_engine, count_program, close_program> {
 public:
  explicit window_engine_on(E const& exec)
      : machine_on<E, window_engine, count_program, close_program>(exec) {
    this->sums = this->exec_.template sums<Column>();
  }
};

}  // namespace detail

/// Sums gradients over a window of micro-batches.
///
/// The result is the gradient of the mean over all items of the window, however they are divided
/// into micro-batches: the sums in memory are weighted by items, and the gate that close() returns
/// multiplies by 1 / items. `Param` says how sums are stored: fp32, 4 bytes per element;
/// stochastic<bf16>, 2 bytes, right in the mean of many elements; split<bf16>, 4 bytes, exact fp32
/// sums whose upper half, to nearest, is what the step reads as bf16; corrected<bf16>, 3 bytes,
/// sums of 16 significant bits, which lose terms below 2^-17 of them, stochastic<corrected<bf16>>
/// not in the mean. Sums are the accumulator's, one block of the executor's memory, each tensor
/// aligned to 128 bytes; some 2 KB more, and what global_norm takes. As a range it is the sums, in
/// the order of the parameters: give it to optimizer::step. A contribution is one pass: convert,
/// weight, add, look for what is not finite. The first one of a window overwrites, so that nothing
/// is ever zeroed.
///
/// All is ordered on the executor, waits for nothing and can be captured in a graph; the same bits
/// from every executor. Members throw before they change anything. Movable, not copyable; not for
/// use from several threads at once.
template <class Param = fp32>
class gradient_accumulator {
  using column = column_for<Param>;
  static_assert(parameter_column<column>,
                "memfit::gradient_accumulator: the argument is a parameter column");
  static_assert(!std::is_same_v<column, column_for<bf16>>,
                "memfit::gradient_accumulator: sums rounded to bf16 stop growing; use fp32, "
                "stochastic<bf16>, corrected<bf16> or split<bf16>");
  static_assert(!std::is_same_v<typename column::element, fp16>,
                "memfit::gradient_accumulator: sums in fp16 overflow; use fp32 or a bf16 column");

 public:
  using element = typename column::element;

  /// For gradients of tensors with the counts and names of these.
  template <executor E, tensors Tensors>
  gradient_accumulator(E const& exec, Tensors&& parameters, accumulator_options options = {})
      : options_(options),
        engine_(new detail::window_engine_on<E, column>(exec)),
        clipper_(exec),
        norm_(layout(exec, parameters)) {}

  /// Adds a micro-batch whose gradients are means over its items, as most losses give them; in the
  /// order of the parameters, fp32, bf16 or fp16. An empty gradient (null data, no elements)
  /// contributes nothing to its tensor, and no items contribute nothing, whatever the gradients
  /// hold. Throws argument_error, or order_error after reduce.
  template <tensors Gradients>
  void add(Gradients&& gradients, item_count items, after_add after = after_add::keep) {
    add("gradient_accumulator::add", gradients, items, after, true);
  }
  /// The same for gradients that are sums over the micro-batch's items.
  template <tensors Gradients>
  void add_sums(Gradients&& gradients, item_count items, after_add after = after_add::keep) {
    add("gradient_accumulator::add_sums", gradients, items, after, false);
  }

  /// The sums of one tensor, for backward passes that add to them on their own: gradients summed
  /// over items. Where overwrites() holds they must write instead, or zero() comes first; added()
  /// follows.
  tensor_ref<element> sums(std::size_t index) requires(std::is_void_v<typename column::kept>) {
    if (index >= views_.size())
      throw argument_error("memfit::gradient_accumulator::sums: tensor " + std::to_string(index) +
                           " of " + std::to_string(views_.size()));
    auto const& v = views_[index];
    return {const_cast<element*>(v.data), v.count, v.name};
  }
  /// Whether the sums are still those of an earlier window.
  bool overwrites() const { return stale_; }
  /// Sets all sums to zero, where a backward pass can only add.
  void zero() {
    require_open("gradient_accumulator::zero");
    naming("gradient_accumulator::zero", [&] {
      engine_->fill(visible_.data(), 0, visible_.bytes());
      engine_->fill(kept_.data(), 0, kept_.bytes());
    });
    stale_ = norm_known_ = false;
  }
  /// Says that a backward pass has added a micro-batch to sums() itself.
  void added(item_count items) {
    require_open("gradient_accumulator::added");
    require_items("gradient_accumulator::added", items);
    naming("gradient_accumulator::added", [&] { tally(items, false); });
    stale_ = norm_known_ = false;
    unseen_ = true;
  }

  /// Sums over all ranks, once per window, after the last micro-batch and before close. A rank
  /// without micro-batches takes part. bf16 sums are rounded to nearest here. Throws order_error
  /// where the window is reduced already. Not for sums in two parts.
  template <communicator C>
  void reduce(C& ranks) requires(std::is_void_v<typename column::kept>) {
    require_open("gradient_accumulator::reduce");
    naming("gradient_accumulator::reduce", [&] {
      if (!open_) tally(0, false);
      if (stale_) zero();
      ranks.all_reduce_sum(static_cast<element*>(visible_.data()),
                           visible_.bytes() / static_cast<std::int64_t>(sizeof(element)));
      ranks.all_reduce_sum(&numbers()->items, 1);
    });
    reduced_ = unseen_ = true;
    norm_known_ = false;
  }

  /// Ends the window and returns its gate: multiplies by 1 / items; where there are none,
  /// multiplies by 0 and skips. What is added next begins another window. loss_scaler::unscale
  /// calls it.
  gate close() {
    double const* at = nullptr;
    if (unseen_) at = norm();
    naming("gradient_accumulator::close", [&] {
      engine_->run(detail::close_program{numbers(), at, !open_});
    });
    open_ = reduced_ = unseen_ = false;
    stale_ = true;
    return {&numbers()->gate.multiplier, &numbers()->gate.skip};
  }

  /// Where the flag lies, in the executor's memory, that is not 0 once some sum was not finite;
  /// right after close.
  std::uint32_t const* nonfinite() const { return &numbers()->nonfinite; }
  /// The norm of the sums as they lie in memory; see global_norm. Computed once per window.
  double const* norm() {
    if (!norm_known_) norm_at_ = norm_(views_);
    norm_known_ = true;
    return norm_at_;
  }
  norm_clipper& clipper() { return clipper_; }

  auto begin() const { return views_.begin(); }
  auto end() const { return views_.end(); }
  std::size_t size() const { return views_.size(); }
  /// Additions so far: with the seed, what the noise of stochastic sums depends on, to be saved.
  /// Throws order_error within a window, whose sums it does not tell. Waits.
  std::int64_t additions_sync() const {
    require_between("gradient_accumulator::additions_sync");
    std::int64_t count = 0;
    naming("gradient_accumulator::additions_sync",
           [&] { engine_->copy_to_host(&count, &numbers()->draw, sizeof count); });
    return count;
  }
  /// Goes on as after so many. Throws order_error within a window. Waits.
  void load_additions(std::int64_t count) {
    require_between("gradient_accumulator::load_additions");
    naming("gradient_accumulator::load_additions",
           [&] { engine_->copy_from_host(&numbers()->draw, &count, sizeof count); });
  }
  /// Bytes of the sums.
  std::int64_t bytes() const { return visible_.bytes() + kept_.bytes(); }

 private:
  struct source {
    void* data = nullptr;
    scalar_kind kind = scalar_kind::fp32;
    bool operator==(source const&) const = default;
  };

  detail::window_numbers* numbers() const {
    return static_cast<detail::window_numbers*>(numbers_.data());
  }

  /// Allocates and enlists the sums; returns their norm, to be computed.
  template <class E, class Tensors>
  global_norm layout(E const& exec, Tensors& parameters) {
    std::vector<std::int64_t> starts;
    std::int64_t all = 0;
    for (auto&& t : parameters) {
      auto const r = ref(t);
      if (std::int64_t const n = r.count; n < 0 || n > INT64_MAX / 64)
        detail::refuse("gradient_accumulator", r.name, std::to_string(r.count) + " elements");
      names_.emplace_back(r.name);
      views_.push_back({nullptr, r.count});
      starts.push_back(all);
      all += fit::elements_of_sums(r.count, static_cast<std::int64_t>(sizeof(element)));
    }
    naming("gradient_accumulator", [&] {
      numbers_ = engine_->zeroed(sizeof(detail::window_numbers));
      visible_ =
          engine_->zeroed(all * static_cast<std::int64_t>(sizeof(element)), memory_use::sums);
      if constexpr (!std::is_void_v<typename column::kept>)
        kept_ = engine_->zeroed(all * static_cast<std::int64_t>(sizeof(typename column::kept)),
                                memory_use::sums);
      for (std::size_t i = 0; i < views_.size(); ++i) enlist(i, starts[i]);
    });
    sources_.resize(views_.size());
    return global_norm(exec, views_);
  }
  void enlist(std::size_t i, std::int64_t start) {
    auto* const data = static_cast<element*>(visible_.data()) + start;
    views_[i] = {data, views_[i].count, names_[i]};
    sum_item item{};
    item.visible = data;
    if constexpr (!std::is_void_v<typename column::kept>)
      item.kept = static_cast<typename column::kept*>(kept_.data()) + start;
    item.count = views_[i].count;
    item.id = static_cast<std::int64_t>(i);
    engine_->sums->add(item);
  }

  template <class Gradients>
  void add(char const* call, Gradients& gradients, item_count items, after_add after,
           bool are_means) {
    require_open(call);
    require_items(call, items);
    auto const fresh = sources_of(call, gradients, after);
    for (std::size_t i = 0; i < fresh.size(); ++i)
      if (!(fresh[i] == sources_[i]))
        engine_->sums->set(static_cast<std::int64_t>(i), fresh[i].data, fresh[i].kind);
    sources_ = fresh;
    naming(call, [&] {
      tally(items, are_means);
      engine_->sums->run({&numbers()->weight, &numbers()->draw, options_.seed, stale_,
                          after == after_add::zero, &numbers()->nonfinite});
    });
    stale_ = norm_known_ = false;
  }

  void tally(item_count items, bool are_means) {
    engine_->run(detail::count_program{numbers(), items, !open_, are_means});
    open_ = true;
  }

  /// The gradients' places; what cannot change with the place of one is checked where it is new.
  template <class Gradients>
  std::vector<source> sources_of(char const* call, Gradients& gradients, after_add after) const {
    std::vector<source> all;
    for (auto&& gradient : gradients) {
      auto const g = ref(gradient);
      using E = typename decltype(ref(gradient))::element;
      static_assert(scalar_element<E>,
                    "memfit::gradient_accumulator: gradients are fp32, bf16 or fp16");
      auto const i = all.size();
      source const place{const_cast<std::remove_const_t<E>*>(g.data), kind_of<E>};
      if (i < views_.size() && (g.data != nullptr || g.count != 0)) {
        detail::require_data(call, "the gradient", names_[i], g);
        detail::require_count(call, "the gradient", names_[i], g, views_[i].count);
        if (!(place == sources_[i])) check_place(call, g, names_[i]);
      }
      if (std::is_const_v<E> && after == after_add::zero)
        detail::refuse(call, g.name, "a constant gradient cannot be zeroed");
      all.push_back(place);
    }
    if (all.size() != views_.size())
      throw argument_error("memfit::" + std::string(call) + ": " + std::to_string(all.size()) +
                           " gradients for " + std::to_string(views_.size()) + " tensors");
    return all;
  }
  template <class E>
  void check_place(char const* call, tensor_ref<E> const& g, std::string_view name) const {
    if (detail::extent_of(g).overlaps(detail::extent_of(visible_.data(), visible_.bytes(), 1)))
      detail::refuse(call, name,
                     "the gradient of " + std::to_string(g.count) + " elements overlaps the sums");
    if (g.count > 0 && !engine_->sums->reaches(g.data))
      detail::refuse(
          call, name,
          "the gradient of " + std::to_string(g.count) +
              " elements lies in memory of the host, where the executor cannot reach it");
  }
  static void require_items(char const* call, item_count items) {
    if (items.at == nullptr && !(items.value >= 0 && items.value <= 0x1p53))
      throw argument_error("memfit::" + std::string(call) + ": " + std::to_string(items.value) +
                           " items");
  }
  void require_open(char const* call) const {
    if (reduced_)
      throw order_error("memfit::" + std::string(call) +
                        ": the window is reduced already: close comes first");
  }
  void require_between(char const* call) const {
    if (open_)
      throw order_error("memfit::" + std::string(call) + ": the window is open: close comes first");
  }
  template <class Work>
  void naming(char const* call, Work const& work) const {
    detail::naming(call, views_.empty() ? std::string_view() : std::string_view(names_[0]),
                   views_.empty() ? 0 : views_[0].count, std::ssize(views_), work);
  }

  accumulator_options options_;
  owner<detail::window_engine> engine_;
  buffer numbers_, visible_, kept_;
  std::vector<std::string> names_;
  std::vector<tensor_ref<element const>> views_;
  std::vector<source> sources_;  // of the latest addition
  double const* norm_at_ = nullptr;
  bool norm_known_ = false;
  bool open_ = false;     // something was added to the window
  bool stale_ = true;     // the sums are those of an earlier window
  bool unseen_ = false;   // no addition looked at the sums as they are
  bool reduced_ = false;  // over the ranks
  norm_clipper clipper_;
  global_norm norm_;
};

}  // namespace memfit
