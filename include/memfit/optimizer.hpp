// The optimizer: a rule, a state format and an executor over the user's own tensors.
// Used by training loops: register tensors once, then call step with their gradients.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/codec/companded.hpp"
#include "memfit/codec/dynamic.hpp"
#include "memfit/codec/linear.hpp"
#include "memfit/codec/packed4.hpp"
#include "memfit/codec/root.hpp"
#include "memfit/codec/small_float.hpp"
#include "memfit/core/check.hpp"
#include "memfit/core/owner.hpp"
#include "memfit/core/pattern.hpp"
#include "memfit/core/tensor.hpp"
#include "memfit/description.hpp"
#include "memfit/exec/engine.hpp"
#include "memfit/occupied.hpp"
#include "memfit/rule/adaptive.hpp"
#include "memfit/rule/ademamix.hpp"
#include "memfit/rule/amsgrad.hpp"
#include "memfit/rule/layerwise.hpp"
#include "memfit/rule/momentum.hpp"
#include "memfit/rule/nadam.hpp"
#include "memfit/rule/radam.hpp"
#include "memfit/rule/root.hpp"
#include "memfit/rule/sign.hpp"

namespace memfit {

namespace detail {
struct state_access;
}  // namespace detail

/// What an optimizer does besides its rule and format.
struct optimizer_options {
  /// Tensors of at least this many elements have quantized moments, smaller ones fp32.
  std::int64_t min_quantized = 4096;
  /// Patterns of names (see pattern.hpp) of tensors whose moments stay fp32 whatever their size.
  std::vector<std::string> keep_fp32 = {};
  /// Keys the noise of stochastic parameter columns and formats.
  std::uint64_t seed = 0;
};

/// Updates registered tensors by Rule, keeping its moments in Format: root8 unless another is
/// named, the 8-bit format that keeps closest to exact moments on gradients of a real run.
///
/// Param says how parameters are stored: fp32 (default), bf16 or fp16 (T), stochastic<T>,
/// corrected<T>, stochastic<corrected<T>>, split<T>, master<T>. The tensors' memory stays the
/// user's and must outlive the optimizer; moments are the optimizer's, in the executor's memory, as
/// is a step counter (8 bytes) per tensor, which only the tensor's own steps advance. Groups of
/// tensors have hyper-parameters of their own; group 0 has those given here and all tensors that
/// are in no other. Results do not depend on the executor, on threads, vector units or on how a
/// step is divided. Members are ordered on the executor; those that give numbers to the host wait
/// for it, and their names end in _sync; so do registration, keep_fp32 and to. Movable, not
/// copyable; not for use from several threads at once. All members throw memfit::error before they
/// change anything.
template <rule Rule, format Format = root8, class Param = fp32>
class optimizer {
  static_assert(stores_rule<Rule, Format>,
                "memfit::optimizer: per_slot names a format for each slot of the rule");
  using column = column_for<Param>;
  static_assert(parameter_column<column>,
                "memfit::optimizer: the third argument is a parameter column");

 public:
  using element = typename column::element;

  template <executor E>
  optimizer(E exec, Rule r, optimizer_options options = {})
      : options_(std::move(options)),
        engine_(new detail::engine_on<E, Rule, Format, column>(std::move(exec))) {
    groups_.push_back(new_group(r, {}));
    now_.push_back(r);
    require_hyperparameters("optimizer");
    if (options_.min_quantized < 0)
      throw argument_error("memfit::optimizer: min_quantized is " +
                           std::to_string(options_.min_quantized));
    naming_all("optimizer", [&] {
      static_assert(sizeof(std::uint64_t) == detail::counter_bytes);
      nonfinite_ = engine_->zeroed(detail::counter_bytes);
    });
  }

  /// Registers a range of tensors, in order.
  template <executor E, tensors Tensors>
  optimizer(E exec, Rule r, Tensors&& parameters, optimizer_options options = {})
      : optimizer(std::move(exec), r, std::move(options)) {
    for (auto&& t : parameters) add(t);
  }

  /// Registers one tensor with zero moments and returns its index. A second buffer of the parameter
  /// column starts from the values the tensor has now. A step captured in a graph before must not
  /// be replayed: it uses memory that is gone.
  template <tensor T>
  std::size_t add(T&& parameter) {
    static_assert(scalar_element<element_of<T>>,
                  "memfit::optimizer: elements are float, memfit::bf16 or memfit::fp16; show a "
                  "vendor's type as memfit's, which has the same bits");
    static_assert(kind_of<element_of<T>> == kind_of<element>,
                  "memfit::optimizer: the tensor's element type is not that of the Param column");
    auto const t = ref(parameter);
    static_assert(!std::is_const_v<typename decltype(ref(parameter))::element>,
                  "memfit::optimizer: a parameter is mutable");
    detail::require_data("optimizer::add", "the parameter", t.name, t);
    auto const where = detail::extent_of(t);
    require_unused("optimizer::add", t.name, "the parameter", where, t.count);
    if (!t.name.empty() && taken_.find(t.name) != taken_.none)
      detail::refuse("optimizer::add", t.name, "a tensor of this name is registered already");

    entry e;
    e.name = t.name;
    e.count = t.count;
    e.visible = t.data;
    e.group = group_by_name(t.name);
    e.quantized = t.count >= options_.min_quantized && !is_kept_fp32(t.name);
    require_reached("optimizer::add", t.name, "the parameter", list_of(e), t.data, t.count);
    detail::naming("optimizer::add", t.name, t.count, 1, [&] {
      e.moments = e.quantized ? fresh_moments<Format>(t.count) : fresh_moments<fp32>(t.count);
      e.kept = fresh_kept(e);
      e.steps = fresh_counter();
      detail::room_for_one_more(entries_);
      enlist(e, entries_.size());
    });
    taken_.add(e.name, where, entries_.size());
    entries_.push_back(std::move(e));
    ++generation_;
    return entries_.size() - 1;
  }

  /// Keeps the moments of tensors whose names fit a pattern in fp32 from now on; before or after
  /// registration, so a pattern that fits no tensor is no error. Moments they already have keep
  /// their values; then it waits for the executor, and a step captured in a graph before must not
  /// be replayed: it uses memory that is gone.
  void keep_fp32(std::string_view pattern) {
    options_.keep_fp32.emplace_back(pattern);
    std::vector<widening> changes;
    try {
      for (std::size_t i = 0; i < entries_.size(); ++i)
        if (entries_[i].quantized && matches(pattern, entries_[i].name))
          naming_one("optimizer::keep_fp32", i, [&] {
            detail::room_for_one_more(changes);
            changes.push_back(widen(i));
          });
    } catch (...) {
      for (auto& c : changes) undo(c);
      options_.keep_fp32.pop_back();
      throw;
    }
    for (auto const& c : changes) engine_->quantized->retire(c.place);
  }

  /// Makes a group whose hyper-parameters start as those of group 0 are now and as
  /// `change(Rule&)` leaves them; returns its number. In it are the tensors, registered now or
  /// later, whose names fit one of the patterns and none of a later group's; others can be put in
  /// by hand. Moments and step counters stay. Waits for nothing; takes effect with the next step,
  /// and not in one captured in a graph before. On CUDA the first 1,024 bytes of rules, 25 groups
  /// of adamw, travel with a step at no cost, each 1,024 bytes more in a small launch of their own.
  /// Throws hyperparameter_error.
  template <class Change>
  std::size_t add_group(std::vector<std::string> patterns, Change const& change) {
    auto fresh = new_group(rule(), std::move(patterns));
    change(fresh->rule);
    auto const number = groups_.size();
    require_hyperparameters("optimizer::add_group", fresh->rule, number);
    detail::room_for_one_more(now_);
    detail::room_for_one_more(groups_);
    now_.push_back(fresh->rule);
    groups_.push_back(std::move(fresh));
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (matches_any(groups_[number]->patterns, entries_[i].name)) put(i, number);
    return number;
  }

  /// Puts a tensor into a group by hand; a group added later whose patterns fit its name takes it
  /// from there. Like add_group otherwise.
  void set_group(std::size_t index, std::size_t group) {
    require_index("optimizer::set_group", index);
    require_group("optimizer::set_group", group);
    put(index, group);
  }

  /// Number of groups.
  std::size_t groups() const { return groups_.size(); }
  /// The group that a tensor is in.
  std::size_t group_of(std::size_t index) const {
    require_index("optimizer::group_of", index);
    return entries_[index].group;
  }

  /// From now on steps pass a tensor by, step_one too, and look at no gradient for it: it keeps
  /// parameter, moments and step counter, which unfreeze lets go on. Waits for nothing; a step
  /// captured in a graph before is as it was.
  void freeze(std::size_t index) { set_frozen("optimizer::freeze", index, true); }
  void unfreeze(std::size_t index) { set_frozen("optimizer::unfreeze", index, false); }
  /// The same for all registered tensors whose names fit a pattern; throws argument_error where
  /// there is none.
  void freeze(std::string_view pattern) { set_frozen("optimizer::freeze", pattern, true); }
  void unfreeze(std::string_view pattern) { set_frozen("optimizer::unfreeze", pattern, false); }
  bool is_frozen(std::size_t index) const {
    require_index("optimizer::is_frozen", index);
    return entries_[index].frozen;
  }

  /// One step of every registered tensor; `gradients` runs parallel to them. An empty gradient
  /// (null data, no elements) leaves a tensor that has elements, and its counter, alone. An element
  /// whose gradient, new moment or new parameter is not finite keeps its parameter, and its moments
  /// up to their block's new scale. Ordered on the executor, which reads the gradients when it
  /// comes to the step, and at every replay of a captured one; after a device_error the step is
  /// done in part or not at all.
  template <tensors Gradients>
  void step(Gradients&& gradients, gate g = {}) {
    views_.clear();
    for (auto&& gradient : gradients) views_.push_back(view(ref(gradient)));
    step(views_, g);
  }
  /// The same with gradients whose element types are known at run time.
  void step(std::vector<scalar_view> const& gradients, gate g = {}) {
    require_hyperparameters("optimizer::step");
    detail::require_current("optimizer::step", g);
    if (gradients.size() != entries_.size())
      throw argument_error("memfit::optimizer::step: " + std::to_string(gradients.size()) +
                           " gradients for " + std::to_string(entries_.size()) + " tensors");
    news_.clear();
    for (std::size_t i = 0; i < gradients.size(); ++i) look_at("optimizer::step", i, gradients[i]);
    take_news();
    auto const call = call_with(g);
    naming_all("optimizer::step", [&] {
      engine_->quantized->step(0, places_[1], call);
      engine_->exact->step(0, places_[0], call);
    });
    g.mark_stepped();
  }

  /// One step of one tensor: for sub-groups, and for gradients released as soon as they exist.
  template <tensor G>
  void step_one(std::size_t index, G&& gradient, gate g = {}) {
    step_one(index, view(ref(gradient)), g);
  }
  void step_one(std::size_t index, scalar_view const& gradient, gate g = {}) {
    require_hyperparameters("optimizer::step_one");
    require_index("optimizer::step_one", index);
    detail::require_current("optimizer::step_one", g);
    news_.clear();
    look_at("optimizer::step_one", index, gradient);
    take_news();
    auto const& e = entries_[index];
    naming_one("optimizer::step_one", index, [&] { list_of(e).step(e.place, 1, call_with(g)); });
    g.mark_stepped();
  }

  /// One step of some tensors, as many as there are gradients: those of these indices, each once.
  /// Otherwise as step; tensors registered one after another take no more launches than all.
  void step_some(std::vector<std::size_t> const& indices, std::vector<scalar_view> const& gradients,
                 gate g = {}) {
    step_part("optimizer::step_some", indices, gradients, g, {});
  }
  /// One part of a step whose window comes in several: the tensors' moments take its share of the
  /// window's gradients, the last part moves the parameters. The caller numbers the parts that each
  /// tensor has had and sees to shares whose sum is 1, as gradient_release does.
  void step_some(std::vector<std::size_t> const& indices, std::vector<scalar_view> const& gradients,
                 gate g, window_part const& part) {
    static_assert(folds,
                  "memfit::optimizer: this rule does not fold the gradients of micro-batches into "
                  "its moments (adam, adamw and radam do): sum them with gradient_accumulator");
    step_part("optimizer::step_some", indices, gradients, g, part);
  }
  /// Throws what step_some would, and changes nothing.
  void check_some(std::vector<std::size_t> const& indices,
                  std::vector<scalar_view> const& gradients) {
    require_hyperparameters("optimizer::check_some");
    look_at_some("optimizer::check_some", indices, gradients);
  }
  /// Whether the rule folds the gradients of micro-batches into its moments.
  static constexpr bool folds = folding_rule<Rule>;

  /// The hyper-parameters of a group, to be changed between steps; step checks them. The reference
  /// holds as long as the optimizer.
  Rule& rule(std::size_t group = 0) {
    require_group("optimizer::rule", group);
    return groups_[group]->rule;
  }
  Rule const& rule(std::size_t group = 0) const {
    require_group("optimizer::rule", group);
    return groups_[group]->rule;
  }

  /// From now on every step reads its hyper-parameters where `place` points, a whole Rule for each
  /// group, in order, in the executor's memory, when it comes to run there; null: takes those of
  /// rule() when it is called, which a captured step keeps for all its replays. For schedules that
  /// a device computes, by kernels before the step in the same stream or graph. Who adds a group
  /// sees to its Rule there before the next step. What stands there is not checked; an element
  /// that it would bring to what is not finite is left as it was and counted.
  void rule_from(Rule const* place) {
    if (place != nullptr && !engine_->exact->reaches(place))
      throw argument_error(
          "memfit::optimizer::rule_from: the rule lies where the executor cannot reach it");
    rules_at_ = place;
  }

  std::size_t size() const { return entries_.size(); }
  /// Elements of a tensor.
  std::int64_t count(std::size_t index) const {
    require_index("optimizer::count", index);
    return entries_[index].count;
  }

  /// Steps that the tensor has taken. Waits for the executor.
  std::int64_t steps_sync(std::size_t index) const {
    require_index("optimizer::steps_sync", index);
    std::int64_t count = 0;
    naming_one("optimizer::steps_sync", index,
               [&] { engine_->copy_to_host(&count, entries_[index].steps, sizeof count); });
    return count;
  }

  /// Where the tensor's step counter lies, in the executor's memory: before a step, the number of
  /// those already taken.
  std::int64_t const* steps(std::size_t index) const {
    require_index("optimizer::steps", index);
    return entries_[index].steps;
  }

  /// Elements, over all steps, that were left as they were because their gradient or their new
  /// moment was not finite. Waits for the executor.
  std::uint64_t nonfinite_sync() const {
    std::uint64_t count = 0;
    naming_all("optimizer::nonfinite_sync",
               [&] { engine_->copy_to_host(&count, nonfinite_.data(), sizeof count); });
    return count;
  }

  /// `count` values of a parameter from element `first` on, as steps go on from them: with what the
  /// column keeps beside what the tensor shows. Waits for the executor.
  std::vector<float> parameter_sync(std::size_t index, std::int64_t first,
                                    std::int64_t count) const {
    require_index("optimizer::parameter_sync", index);
    auto const& e = entries_[index];
    if (first < 0 || count < 0 || first > e.count || count > e.count - first)
      detail::refuse("optimizer::parameter_sync", e.name,
                     "elements " + std::to_string(first) + " to " + std::to_string(first) + " + " +
                         std::to_string(count) + " of " + std::to_string(e.count));
    std::vector<float> values;
    naming_one("optimizer::parameter_sync", index,
               [&] { values = decode_parameter(e, first, count); });
    return values;
  }

  /// The values of one moment, decoded on the host. Waits for the executor.
  std::vector<float> moment_sync(std::size_t index, int slot) const {
    require_index("optimizer::moment_sync", index);
    if (slot < 0 || slot >= slots)
      detail::refuse("optimizer::moment_sync", entries_[index].name,
                     "slot " + std::to_string(slot) + " of " + std::to_string(slots));
    std::vector<float> values;
    naming_one("optimizer::moment_sync", index,
               [&] { values = decode_slot(entries_[index], slot, all_slots()); });
    return values;
  }

  /// This optimizer on another executor: `parameters` are the same tensors there, in order, with
  /// the values that they have here. States, step counters and what the parameter columns keep go
  /// along bit for bit, groups and what is frozen too, rule_from does not. Throws argument_error
  /// where counts or names differ. Waits for both executors.
  template <executor E, tensors Tensors>
  optimizer to(E exec, Tensors&& parameters) const {
    optimizer out(std::move(exec), rule(), parameters, options_);
    if (out.size() != size())
      throw argument_error("memfit::optimizer::to: " + std::to_string(out.size()) +
                           " tensors for " + std::to_string(size()));
    for (std::size_t i = 0; i < size(); ++i) {
      auto const& from = entries_[i];
      auto const& to = out.entries_[i];
      if (from.name != to.name || from.count != to.count)
        detail::refuse("optimizer::to", to.name,
                       std::to_string(to.count) + " elements named '" + to.name + "' for " +
                           std::to_string(from.count) + " named '" + from.name + "'");
      naming_one("optimizer::to", i, [&] { carry(from, out, to); });
    }
    carry(nonfinite_, out, out.nonfinite_);
    carry_policy(out);
    return out;
  }

  description describe() const {
    description d;
    for (auto const& e : entries_) {
      tensor_description t{
          e.name,         e.count, e.quantized, e.count * bytes_of(kind_of<element>),
          e.kept.bytes(), 0,       e.group,     e.frozen};
      for (auto const& m : e.moments) t.state_bytes += m.codes.bytes() + m.scales.bytes();
      d.parameter_bytes += t.parameter_bytes;
      d.kept_bytes += t.kept_bytes;
      d.state_bytes += t.state_bytes;
      d.tensors.push_back(std::move(t));
    }
    for (auto const& row : counters_) d.shared_bytes += row.bytes();
    d.shared_bytes += nonfinite_.bytes() + engine_->quantized->bytes() + engine_->exact->bytes();
    return d;
  }

 private:
  friend detail::state_access;  // which files of states are written and read by

  static constexpr int slots = slot_count<Rule>;
  static constexpr auto all_slots() { return std::make_integer_sequence<int, slots>(); }
  static constexpr std::size_t index_of(std::int64_t i) { return static_cast<std::size_t>(i); }

  struct moment_buffers {
    buffer codes, scales;
  };
  using moments_array = std::array<moment_buffers, index_of(slots)>;

  struct gradient_place {
    scalar_view view = {nullptr, scalar_kind::fp32, -1};
    std::int64_t generation = 0;  // of the registered parameters that it does not overlap
    bool operator==(gradient_place const&) const = default;
  };

  struct entry {
    std::string name;
    std::int64_t count = 0;
    void* visible = nullptr;
    buffer kept;
    moments_array moments;
    bool quantized = false;
    bool frozen = false;
    std::size_t group = 0;
    std::int64_t* steps = nullptr;
    std::int64_t place = 0;  // in the list of quantized or exact tensors
    gradient_place seen;     // the gradient that the list knows
  };

  struct group_of_tensors {
    Rule rule;
    std::vector<std::string> patterns;
  };
  using group_owner = owner<group_of_tensors>;  // in a place of its own: rule() hands it out

  /// A gradient that has been checked but not passed on.
  struct news {
    std::size_t index;
    gradient_place gradient;
  };

  /// What a tensor had before it was given fp32 moments.
  struct widening {
    std::size_t index;
    std::int64_t place;
    moments_array moments;
  };

  /// Gives a quantized tensor fp32 moments of the same values; in the list of quantized ones it
  /// stays for now.
  widening widen(std::size_t index) {
    auto& e = entries_[index];
    widening before{index, e.place, {}};
    auto wide = fresh_moments<fp32>(e.count);
    for (int slot = 0; slot < slots; ++slot) {
      auto const values = decode_slot(e, slot, all_slots());
      engine_->copy_from_host(wide[index_of(slot)].codes.data(), values.data(), e.count * 4);
    }
    std::swap(e.moments, wide);
    e.quantized = false;
    try {
      enlist(e, index);
    } catch (...) {
      e.quantized = true;
      std::swap(e.moments, wide);
      throw;
    }
    std::swap(before.moments, wide);
    return before;
  }
  void undo(widening& before) {
    auto& e = entries_[before.index];
    engine_->exact->retire(e.place);
    std::swap(e.moments, before.moments);
    e.place = before.place;
    e.quantized = true;
    e.seen = {};
  }

  static group_owner new_group(Rule const& r, std::vector<std::string> patterns) {
    return group_owner(new group_of_tensors{r, std::move(patterns)});
  }
  /// The latest group that has a pattern for the name.
  std::size_t group_by_name(std::string_view name) const {
    for (auto group = groups_.size() - 1; group > 0; --group)
      if (matches_any(groups_[group]->patterns, name)) return group;
    return 0;
  }
  static std::int32_t group_in_list(entry const& e) {
    return e.frozen ? -1 : static_cast<std::int32_t>(e.group);
  }
  void put(std::size_t index, std::size_t group) {
    auto& e = entries_[index];
    e.group = group;
    list_of(e).set_group(e.place, group_in_list(e));
  }
  void set_frozen(char const* call, std::size_t index, bool frozen) {
    require_index(call, index);
    auto& e = entries_[index];
    e.frozen = frozen;
    list_of(e).set_group(e.place, group_in_list(e));
  }
  void set_frozen(char const* call, std::string_view pattern, bool frozen) {
    bool found = false;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (matches(pattern, entries_[i].name)) {
        found = true;
        set_frozen(call, i, frozen);
      }
    if (!found)
      throw argument_error("memfit::" + std::string(call) + ": none of " +
                           std::to_string(entries_.size()) + " tensors has a name like '" +
                           std::string(pattern) + "'");
  }

  /// Names what a device or its memory refuses.
  template <class Work>
  void naming_one(char const* call, std::size_t index, Work const& work) const {
    detail::naming(call, entries_[index].name, entries_[index].count, 1, work);
  }
  template <class Work>
  void naming_all(char const* call, Work const& work) const {
    detail::naming(call, entries_.empty() ? std::string_view() : entries_.front().name,
                   entries_.empty() ? 0 : entries_.front().count, std::ssize(entries_), work);
  }

  void enlist(entry& e, std::size_t index) {
    step_item<Rule> item{};
    item.visible = e.visible;
    item.kept = e.kept.data();
    item.count = e.count;
    for (int slot = 0; slot < slots; ++slot)
      item.moments[slot] = {e.moments[index_of(slot)].codes.data(),
                            e.moments[index_of(slot)].scales.data()};
    item.steps = e.steps;
    item.group = group_in_list(e);
    item.id = static_cast<std::int64_t>(index);
    list_of(e).add(item);
    e.place = places_[e.quantized ? 1 : 0]++;
    e.seen = {};
  }
  step_list<Rule>& list_of(entry const& e) const {
    return e.quantized ? *engine_->quantized : *engine_->exact;
  }

  /// The next of a row of zeroed counters in the executor's memory.
  std::int64_t* fresh_counter() {
    constexpr auto row = index_of(detail::counters_in_row);
    if (entries_.size() / row >= counters_.size())
      counters_.push_back(engine_->zeroed(detail::counters_in_row * detail::counter_bytes));
    return static_cast<std::int64_t*>(counters_[entries_.size() / row].data()) +
           entries_.size() % row;
  }

  void carry(void const* from, optimizer const& other, void* to, std::int64_t bytes) const {
    std::vector<unsigned char> bounce(static_cast<std::size_t>(bytes));
    engine_->copy_to_host(bounce.data(), from, bytes);
    other.engine_->copy_from_host(to, bounce.data(), bytes);
  }
  void carry(buffer const& from, optimizer const& other, buffer const& to) const {
    carry(from.data(), other, to.data(), to.bytes());
  }
  void carry(entry const& from, optimizer const& other, entry const& to) const {
    for (int slot = 0; slot < slots; ++slot) {
      carry(from.moments[index_of(slot)].codes, other, to.moments[index_of(slot)].codes);
      carry(from.moments[index_of(slot)].scales, other, to.moments[index_of(slot)].scales);
    }
    carry(from.kept, other, to.kept);
    carry(from.steps, other, to.steps, sizeof *to.steps);
  }

  void carry_policy(optimizer& to) const {
    for (std::size_t group = 1; group < groups_.size(); ++group)
      to.add_group(groups_[group]->patterns, [&](Rule& r) { r = groups_[group]->rule; });
    for (std::size_t i = 0; i < size(); ++i) {
      to.put(i, entries_[i].group);
      if (entries_[i].frozen) to.freeze(i);
    }
  }

  void require_hyperparameters(char const* call) const {
    for (std::size_t group = 0; group < groups_.size(); ++group)
      require_hyperparameters(call, groups_[group]->rule, group);
  }
  void require_hyperparameters(char const* call, Rule const& r, std::size_t group) const {
    char const* const bad = invalid_hyperparameter(r);
    if (bad == nullptr) return;
    throw hyperparameter_error("memfit::" + std::string(call) + ": " + bad + " of group " +
                               std::to_string(group) + " is out of range or not finite (" +
                               std::to_string(entries_.size()) + " tensors, " +
                               std::to_string(elements()) + " elements)");
  }
  void require_group(char const* call, std::size_t group) const {
    if (group >= groups_.size())
      throw argument_error("memfit::" + std::string(call) + ": group " + std::to_string(group) +
                           " of " + std::to_string(groups_.size()));
  }
  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (auto const& e : entries_) sum += e.count;
    return sum;
  }
  void require_index(char const* call, std::size_t index) const {
    if (index >= entries_.size())
      throw argument_error("memfit::" + std::string(call) + ": tensor " + std::to_string(index) +
                           " of " + std::to_string(entries_.size()));
  }
  /// Refuses memory that a registered parameter occupies.
  void require_unused(char const* call, std::string_view name, char const* what,
                      detail::extent const& where, std::int64_t count) const {
    auto const other = taken_.overlapping(where);
    if (other != taken_.none)
      detail::refuse(call, name,
                     std::string(what) + " of " + std::to_string(count) +
                         " elements overlaps the registered parameter " + entries_[other].name +
                         " (number " + std::to_string(other) + ")");
  }
  /// Refuses memory that the executor cannot reach.
  void require_reached(char const* call, std::string_view name, char const* what,
                       step_list<Rule> const& list, void const* data, std::int64_t count) const {
    if (count > 0 && !list.reaches(data))
      detail::refuse(
          call, name,
          std::string(what) + " of " + std::to_string(count) +
              " elements lies in memory of the host, where the executor cannot reach it");
  }
  bool is_kept_fp32(std::string_view name) const { return matches_any(options_.keep_fp32, name); }

  template <class F>
  moments_array fresh_moments(std::int64_t count) const {
    return fresh_moments<F>(count, all_slots());
  }
  template <class F, int... I>
  moments_array fresh_moments([[maybe_unused]] std::int64_t count,
                              std::integer_sequence<int, I...>) const {
    return {fresh_moment<slot_storage<Rule, F, I>>(count)...};
  }
  template <class Storage>
  moment_buffers fresh_moment(std::int64_t count) const {
    static_assert(Storage::codec::zero == 0 || Storage::code_size == 1);
    moment_buffers m;
    m.codes = engine_->allocate(Storage::code_bytes(count), memory_use::moments);
    engine_->fill(m.codes.data(), Storage::zero_byte, m.codes.bytes());
    m.scales = engine_->zeroed(Storage::scale_bytes(count), memory_use::scales);
    return m;
  }

  buffer fresh_kept(entry const& e) const {
    using kept = typename column::kept;
    if constexpr (!std::is_void_v<kept>) {
      buffer all =
          engine_->allocate(e.count * static_cast<std::int64_t>(sizeof(kept)), memory_use::kept);
      constexpr std::int64_t at_once = std::int64_t{1} << 16;
      std::vector<typename column::code> seen(at_once);
      std::vector<kept> values(at_once);
      for (std::int64_t first = 0; first < e.count; first += at_once) {
        auto const n = e.count - first < at_once ? e.count - first : at_once;
        engine_->copy_to_host(seen.data(), static_cast<typename column::code*>(e.visible) + first,
                              n * bytes_of(kind_of<element>));
        for (std::int64_t i = 0; i < n; ++i) {
          float const x = column::decode_visible(std::uint32_t{seen[index_of(i)]});
          values[index_of(i)] = static_cast<kept>(column::encode(x, 0u).kept);
        }
        engine_->copy_from_host(static_cast<kept*>(all.data()) + first, values.data(),
                                n * static_cast<std::int64_t>(sizeof(kept)));
      }
      return all;
    } else {
      return {};
    }
  }

  template <class E>
  static scalar_view view(tensor_ref<E> const& gradient) {
    static_assert(scalar_element<E>, "memfit::optimizer: gradients are fp32, bf16 or fp16");
    return {gradient.data, kind_of<E>, gradient.count};
  }

  /// Checks a gradient unless it lies where the tensor's last one did.
  void look_at(char const* call, std::size_t index, scalar_view const& gradient) {
    auto const& e = entries_[index];
    if (e.frozen) return;
    gradient_place const place{gradient, generation_};
    if (place == e.seen) return;
    if (gradient.data != nullptr || gradient.count != 0 || e.count == 0) {
      detail::require_data(call, "the gradient", e.name, gradient);
      detail::require_count(call, "the gradient", e.name, gradient, e.count);
      auto const where = detail::extent_of(gradient.data, gradient.count, bytes_of(gradient.kind));
      require_unused(call, e.name, "the gradient", where, gradient.count);
      require_reached(call, e.name, "the gradient", list_of(e), gradient.data, gradient.count);
    }
    news_.push_back({index, place});
  }
  void take_news() {
    for (auto const& n : news_) {
      auto& e = entries_[n.index];
      list_of(e).set_gradient(e.place, n.gradient.view.data, n.gradient.view.kind);
      e.seen = n.gradient;
    }
  }
  step_call<Rule> call_with(gate g, window_part const& part = {}) {
    for (std::size_t group = 0; group < groups_.size(); ++group) now_[group] = groups_[group]->rule;
    return {now_.data(), std::ssize(now_),
            rules_at_,   options_.seed,
            g,           static_cast<std::uint64_t*>(nonfinite_.data()),
            part};
  }

  void step_part(char const* call, std::vector<std::size_t> const& indices,
                 std::vector<scalar_view> const& gradients, gate g, window_part const& part) {
    require_hyperparameters(call);
    detail::require_current(call, g);
    if (!(part.share >= 0.0f && part.share <= 1.0f) || part.number < 0)
      throw argument_error("memfit::" + std::string(call) + ": part " +
                           std::to_string(part.number) + " with a share of " +
                           std::to_string(part.share));
    look_at_some(call, indices, gradients);
    if (indices.empty()) return;
    take_news();
    auto const of_part = call_with(g, part);
    auto const& first = entries_[indices.front()];
    detail::naming(call, first.name, first.count, std::ssize(indices), [&] {
      step_runs(*engine_->quantized, some_[1], of_part);
      step_runs(*engine_->exact, some_[0], of_part);
    });
    g.mark_stepped();
  }
  /// Checks tensors and their gradients, and puts the tensors' places in their lists in order.
  void look_at_some(char const* call, std::vector<std::size_t> const& indices,
                    std::vector<scalar_view> const& gradients) {
    if (gradients.size() != indices.size())
      throw argument_error("memfit::" + std::string(call) + ": " +
                           std::to_string(gradients.size()) + " gradients for " +
                           std::to_string(indices.size()) + " tensors");
    news_.clear();
    for (auto& places : some_) places.clear();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      require_index(call, indices[i]);
      auto const& e = entries_[indices[i]];
      look_at(call, indices[i], gradients[i]);
      if (!put_in_order(some_[e.quantized ? 1 : 0], e.place))
        detail::refuse(call, e.name,
                       "it is there twice (number " + std::to_string(indices[i]) + ")");
    }
  }
  /// Whether the place was not there.
  static bool put_in_order(std::vector<std::int64_t>& places, std::int64_t place) {
    auto at = places.end();
    while (at != places.begin() && at[-1] > place) --at;
    if (at != places.begin() && at[-1] == place) return false;
    places.insert(at, place);
    return true;
  }
  static void step_runs(step_list<Rule>& list, std::vector<std::int64_t> const& places,
                        step_call<Rule> const& call) {
    for (std::size_t i = 0, end = 0; i < places.size(); i = end) {
      for (end = i + 1; end < places.size() && places[end] == places[end - 1] + 1;) ++end;
      list.step(places[i], static_cast<std::int64_t>(end - i), call);
    }
  }

  std::vector<float> decode_parameter(entry const& e, std::int64_t first,
                                      std::int64_t count) const {
    using kept = typename column::kept;
    std::vector<typename column::code> seen(index_of(count));
    engine_->copy_to_host(seen.data(), static_cast<typename column::code*>(e.visible) + first,
                          count * bytes_of(kind_of<element>));
    std::vector<float> values(index_of(count));
    if constexpr (std::is_void_v<kept>) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = column::decode_visible(std::uint32_t{seen[i]});
    } else {
      std::vector<kept> rest(index_of(count));
      engine_->copy_to_host(rest.data(), static_cast<kept*>(e.kept.data()) + first,
                            count * static_cast<std::int64_t>(sizeof(kept)));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = column::decode(std::uint32_t{seen[i]}, std::uint32_t{rest[i]});
    }
    return values;
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
    using S = slot_storage<Rule, F, I>;
    auto const& m = e.moments[I];
    std::vector<typename S::code> codes(index_of(m.codes.bytes() / S::code_size));
    std::vector<typename S::scale> scales(index_of(m.scales.bytes() / S::scale_size));
    engine_->copy_to_host(codes.data(), m.codes.data(), m.codes.bytes());
    engine_->copy_to_host(scales.data(), m.scales.data(), m.scales.bytes());
    for (std::int64_t i = 0; i < e.count; ++i)
      out[index_of(i)] = detail::moment_value<typename S::codec, S::values>(
          load_code<typename S::codec>(codes.data(), i),
          S::load_scale(scales.data(), i / S::block));
  }

  std::vector<group_owner> groups_;
  std::vector<Rule> now_;  // the groups' rules side by side, as of the latest step
  Rule const* rules_at_ = nullptr;
  optimizer_options options_;
  owner<detail::engine<Rule>> engine_;
  buffer nonfinite_;
  std::vector<buffer> counters_;
  std::vector<entry> entries_;
  std::int64_t places_[2] = {};        // tensors enlisted as exact and as quantized
  std::vector<std::int64_t> some_[2];  // places of the tensors that step_some was given
  std::int64_t generation_ = 0;
  std::vector<news> news_;
  std::vector<scalar_view> views_;
  detail::occupied<> taken_;
};

}  // namespace memfit
