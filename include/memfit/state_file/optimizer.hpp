// An optimizer's part of a file of states: every column of every tensor, and what it takes to go on
// from them as if nothing had been.
// Used by save_state and load_state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memfit/names.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/rule/hyperparameters.hpp"
#include "memfit/state_file/part.hpp"
#include "memfit/state_file/slot.hpp"

namespace memfit {

namespace detail {

/// What an optimizer stores of a slot of a tensor, in the executor's memory.
struct slot_columns {
  char const* name;
  slot_face face;
  void* codes;
  void* scales;
};

/// What it stores of a tensor.
struct tensor_columns {
  std::string name;
  std::int64_t count;
  stored_type kept_type;
  void* kept;  ///< null: nothing
  std::int64_t* steps;
  std::size_t group;
  bool frozen;
  std::vector<slot_columns> slots;
};

/// All that does not depend on its type.
struct optimizer_columns {
  machine<> const* of;
  std::string rule, parameter;
  std::uint64_t seed;
  std::size_t groups;
  void* nonfinite;
  std::vector<tensor_columns> tensors;
};

/// Reaches what an optimizer stores.
struct state_access {
  template <class Rule, class Format, class Param>
  static optimizer_columns columns(optimizer<Rule, Format, Param> const& o) {
    optimizer_columns all{&*o.engine_,
                          name_or_none<Rule>(),
                          name_or_none<Param>(),
                          o.options_.seed,
                          o.groups(),
                          o.nonfinite_.data(),
                          {}};
    for (auto const& e : o.entries_) {
      auto const number = std::to_string(all.tensors.size());
      tensor_columns t{e.name.empty() ? "#" + number : e.name,
                       e.count,
                       kept_type<typename column_for<Param>::kept>(),
                       e.kept.data(),
                       e.steps,
                       e.group,
                       e.frozen,
                       {}};
      if (e.quantized)
        add_slots<Rule, Format>(e, t.slots, o.all_slots());
      else
        add_slots<Rule, fp32>(e, t.slots, o.all_slots());
      all.tensors.push_back(std::move(t));
    }
    return all;
  }
  template <class Optimizer>
  static void set_seed(Optimizer& o, std::uint64_t seed) {
    o.options_.seed = seed;
  }

 private:
  template <class Kept>
  static constexpr stored_type kept_type() {
    if constexpr (std::is_void_v<Kept>)
      return stored_type::u8;
    else
      return stored_as<Kept>;
  }
  template <class Rule, class Format, class Entry, int... Slot>
  static void add_slots([[maybe_unused]] Entry const& e,
                        [[maybe_unused]] std::vector<slot_columns>& to,
                        std::integer_sequence<int, Slot...>) {
    (to.push_back(
         {Rule::slots[Slot].name,
          face_of<slot_format<Format, Slot>, Rule::slots[Slot].range, Rule::slots[Slot].scaling>(),
          e.moments[Slot].codes.data(), e.moments[Slot].scales.data()}),
     ...);
  }
};

/// What has been looked at in a file and is ready to be taken, without memory being asked for.
class state_taker {
 public:
  explicit state_taker(machine<> const& of) : of_(&of), mover_(of) {}

  /// Bytes as they are.
  void copy(stored_tensor const& from, void* to) { copies_.push_back({&from, to}); }
  /// A number that the file may hold in another type.
  void set(std::int64_t* to, std::int64_t value) { numbers_.push_back({to, value}); }

  /// A slot of `count` elements whose codes have this layout and coder. `scales` is null where it
  /// has none. Refuses numbers that the slot cannot hold.
  void slot(tensor_file const& file, stored_tensor const& codes, stored_tensor const* scales,
            slot_coder const& coder, slot_layout const& layout, slot_columns const& to,
            std::int64_t count) {
    auto const& own = to.face.layout;
    slot_source source(codes, scales, coder, layout, count);
    source.for_each_part(file, [&](std::int64_t first, std::int64_t n, float const* x) {
      for (std::int64_t i = 0; i < n; ++i)
        if (bits(abs(x[i])) >= to.face.limit)
          file.refuse(codes.name, "element " + std::to_string(first + i) + " is " +
                                      std::to_string(x[i]) + ", too much for " + shown(own.text()));
    });
    if (&coder == to.face.coder && layout == own) {
      copy(codes, to.codes);
      if (scales != nullptr) copy(*scales, to.scales);
      return;
    }
    recodings_.push_back({std::move(source), to, {}, {}});
    auto const n = count < slot_source::at_once ? count : slot_source::at_once;
    recodings_.back().codes.resize(words_for(to.face.coder->code_bytes(n)));
    if (to.face.coder->scaled)
      recodings_.back().scales.resize(words_for(block_count(n, own.block) * bytes_of(own.scales)));
  }

  void take(tensor_file const& from) {
    for (auto const& c : copies_) mover_.take(from, *c.from, c.to);
    for (auto& r : recodings_) recode(from, r);
    for (auto const& n : numbers_) of_->copy_from_host(n.to, &n.value, sizeof n.value);
  }

 private:
  struct copied {
    stored_tensor const* from;
    void* to;
  };
  struct number {
    std::int64_t* to;
    std::int64_t value;
  };
  /// A slot whose numbers are coded anew.
  struct recoded {
    slot_source from;
    slot_columns to;
    std::vector<std::uint32_t> codes, scales;
  };

  static std::size_t words_for(std::int64_t bytes) {
    return static_cast<std::size_t>((bytes + 3) / 4);
  }
  void recode(tensor_file const& file, recoded& r) const {
    auto const& face = r.to.face;
    auto const put = [&](void* to, std::int64_t at, void const* from, std::int64_t bytes) {
      of_->copy_from_host(static_cast<char*>(to) + at, from, bytes);
    };
    r.from.for_each_part(file, [&](std::int64_t first, std::int64_t n, float const* x) {
      face.encode(x, n, r.codes.data(), r.scales.data());
      put(r.to.codes, face.coder->code_bytes(first), r.codes.data(), face.coder->code_bytes(n));
      if (!face.coder->scaled) return;
      auto const size = bytes_of(face.layout.scales);
      put(r.to.scales, first / face.layout.block * size, r.scales.data(),
          block_count(n, face.layout.block) * size);
    });
  }

  machine<> const* of_;
  column_mover mover_;
  std::vector<copied> copies_;
  std::vector<recoded> recodings_;
  std::vector<number> numbers_;
};

/// The part of an optimizer, but for its rule, whose type only its heir knows.
class optimizer_part_base : public state_part {
 public:
  explicit optimizer_part_base(part_options options) : options_(std::move(options)) {}

  void list(std::vector<stored_tensor>& tensors, stored_words& words) override {
    auto const all = columns();
    auto const say = [&](std::string const& what, std::string const& text) {
      words.emplace_back(key(what), text);
    };
    say("optimizer.layout", layout);
    say("optimizer.rule", all.rule);
    say("optimizer.parameter", all.parameter);
    say("optimizer.tensors", std::to_string(all.tensors.size()));
    say("optimizer.groups", std::to_string(all.groups));
    say("optimizer.seed", text_of_number(all.seed));
    list_rules(words);
    tensors.push_back({key("optimizer.nonfinite"), stored_type::u64, {}});
    std::int64_t number = 0;
    for (auto const& t : all.tensors) {
      say("tensor." + t.name, text_of_tensor(number++, t.count));
      say("group." + t.name, text_of_group({t.group, t.frozen}));
      for (auto const& s : t.slots) {
        words.emplace_back(format_key(t, s), s.face.layout.text());
        tensors.push_back(codes_of(t, s, *s.face.coder));
        if (s.face.coder->scaled) tensors.push_back(scales_of(t, s, s.face.layout));
      }
      if (t.kept != nullptr) tensors.push_back(kept_of(t));
      tensors.push_back(steps_of(t));
    }
  }

  void write(tensor_file_writer& to, std::size_t first) override {
    auto const all = columns();
    column_mover mover(*all.of);
    mover.write(to, first++, all.nonfinite);
    for (auto const& t : all.tensors) {
      for (auto const& s : t.slots) {
        mover.write(to, first++, s.codes);
        if (s.face.coder->scaled) mover.write(to, first++, s.scales);
      }
      if (t.kept != nullptr) mover.write(to, first++, t.kept);
      mover.write(to, first++, t.steps);
    }
  }

  void prepare(tensor_file const& from) override {
    auto const all = columns();
    from.expect(key("optimizer.layout"), layout);
    from.expect(key("optimizer.rule"), all.rule);
    from.expect(key("optimizer.parameter"), all.parameter);
    from.expect(key("optimizer.tensors"), std::to_string(all.tensors.size()));
    from.expect(key("optimizer.groups"), std::to_string(all.groups));
    seed_ = from.number_at<std::uint64_t>(key("optimizer.seed"));
    prepare_rules(from);
    memberships_.clear();
    taker_.emplace(*all.of);
    taker_->copy(from.expect({key("optimizer.nonfinite"), stored_type::u64, {}}), all.nonfinite);
    std::int64_t number = 0;
    for (auto const& t : all.tensors) {
      from.expect(key("tensor." + t.name), text_of_tensor(number++, t.count));
      memberships_.push_back(group_in(from, key("group." + t.name), all.groups));
      for (auto const& s : t.slots) prepare_slot(from, t, s);
      if (t.kept != nullptr) taker_->copy(from.expect(kept_of(t)), t.kept);
      auto const& steps = from.expect(steps_of(t));
      std::int64_t count = 0;
      from.read(steps, 0, &count, sizeof count);
      if (count < 0) from.refuse(steps.name, std::to_string(count) + " steps");
      taker_->set(t.steps, count);
    }
  }

  void take(tensor_file const& from) override {
    taker_->take(from);
    take_rules();
    for (std::size_t i = 0; i < memberships_.size(); ++i) set_membership(i, memberships_[i]);
    set_seed(seed_);
  }

 protected:
  /// The group of a tensor, and whether it is frozen.
  struct membership {
    std::size_t group;
    bool frozen;
  };

  virtual optimizer_columns columns() const = 0;
  virtual void list_rules(stored_words& words) const = 0;
  virtual void prepare_rules(tensor_file const& from) = 0;
  virtual void take_rules() = 0;
  virtual void set_membership(std::size_t index, membership m) = 0;
  virtual void set_seed(std::uint64_t seed) = 0;

  std::string key(std::string const& what) const { return options_.prefix + what; }

 private:
  static constexpr char const* layout = "1";

  static std::string text_of_tensor(std::int64_t number, std::int64_t count) {
    return "number " + std::to_string(number) + ", " + std::to_string(count) + " elements";
  }
  static constexpr std::string_view frozen_ = ", frozen";
  static std::string text_of_group(membership m) {
    return std::to_string(m.group).append(m.frozen ? frozen_ : "");
  }
  static membership group_in(tensor_file const& file, std::string const& key, std::size_t groups) {
    std::string_view text = file.word_at(key);
    membership m{0, text.ends_with(frozen_)};
    if (m.frozen) text.remove_suffix(frozen_.size());
    if (!parse_number(text, m.group) || m.group >= groups)
      file.refuse(key + " is " + shown(*file.word(key)) + ", expected a group below " +
                  std::to_string(groups));
    return m;
  }
  std::string format_key(tensor_columns const& t, slot_columns const& s) const {
    return key("format." + t.name + "." + s.name);
  }
  stored_tensor codes_of(tensor_columns const& t, slot_columns const& s,
                         slot_coder const& coder) const {
    auto const n = coder.width < 8 ? coder.code_bytes(t.count) : t.count;
    return {key(t.name + "." + s.name + (coder.scaled ? ".codes" : "")), coder.type, {n}};
  }
  stored_tensor scales_of(tensor_columns const& t, slot_columns const& s,
                          slot_layout const& how) const {
    return {key(t.name + "." + s.name + ".scales"), how.scales, {block_count(t.count, how.block)}};
  }
  stored_tensor kept_of(tensor_columns const& t) const {
    return {key(t.name + ".kept"), t.kept_type, {t.count}};
  }
  stored_tensor steps_of(tensor_columns const& t) const {
    return {key(t.name + ".step"), stored_type::i64, {}};
  }

  void prepare_slot(tensor_file const& file, tensor_columns const& t, slot_columns const& s) {
    auto const& own = s.face.layout;
    auto const how = format_key(t, s);
    if (!options_.convert) file.expect(how, own.text());
    slot_layout found;
    auto const& text = file.word_at(how);
    if (!slot_layout::parse(text, found))
      file.refuse(how + " is " + shown(text) + ", which names no format");
    slot_coder const* const coder =
        found.format == own.format ? s.face.coder : coder_named(found.format, s.face.values);
    if (coder == nullptr || coder->scaled != (found.block != 0))
      file.refuse(how + " is " + shown(text) + ", which cannot be converted to " +
                  shown(own.text()));
    auto const& codes = file.expect(codes_of(t, s, *coder));
    auto const* const scales = coder->scaled ? &file.expect(scales_of(t, s, found)) : nullptr;
    taker_->slot(file, codes, scales, *coder, found, s, t.count);
  }

  part_options options_;
  std::uint64_t seed_ = 0;
  std::vector<membership> memberships_;
  std::optional<state_taker> taker_;  // once it is prepared
};

template <class Rule, class Format, class Param>
class optimizer_part final : public optimizer_part_base {
 public:
  optimizer_part(optimizer<Rule, Format, Param>& of, part_options options)
      : optimizer_part_base(std::move(options)), optimizer_(&of) {}

 protected:
  optimizer_columns columns() const override { return state_access::columns(*optimizer_); }
  void set_seed(std::uint64_t seed) override { state_access::set_seed(*optimizer_, seed); }
  void set_membership(std::size_t index, membership m) override {
    optimizer_->set_group(index, m.group);
    if (m.frozen)
      optimizer_->freeze(index);
    else
      optimizer_->unfreeze(index);
  }
  void list_rules([[maybe_unused]] stored_words& words) const override {
    if constexpr (lists_hyperparameters<Rule>)
      for (std::size_t group = 0; group < optimizer_->groups(); ++group)
        for_each_hyperparameter(optimizer_->rule(group), [&](std::string_view name, double value) {
          words.emplace_back(rule_key(group, name), text_of_number(value));
        });
  }
  void prepare_rules([[maybe_unused]] tensor_file const& from) override {
    rules_.clear();
    for (std::size_t group = 0; group < optimizer_->groups(); ++group) {
      rules_.push_back(optimizer_->rule(group));
      if constexpr (lists_hyperparameters<Rule>) read_rule(from, group, rules_.back());
    }
  }
  void take_rules() override {
    for (std::size_t group = 0; group < rules_.size(); ++group)
      optimizer_->rule(group) = rules_[group];
  }

 private:
  std::string rule_key(std::size_t group, std::string_view name) const {
    return key("optimizer.rule." + std::to_string(group) + ".").append(name);
  }
  void read_rule(tensor_file const& from, std::size_t group, Rule& rule) const {
    for (auto const& h : rule.hyperparameters()) {
      auto const where = rule_key(group, h.name());
      if (!h.set(from.number_at<double>(where)))
        from.refuse(where + " is " + shown(*from.word(where)) + ", which it cannot be");
    }
    if (char const* const bad = invalid_hyperparameter(rule))
      from.refuse(rule_key(group, bad) + " is out of range or not finite");
  }

  optimizer<Rule, Format, Param>* optimizer_;
  std::vector<Rule> rules_;  // once they are prepared
};

}  // namespace detail

/// An optimizer as a part of a file: for each tensor one tensor of the file per column (codes and
/// scales of each slot, what the parameter column keeps, the step counter), and as words its rule,
/// hyper-parameters of every group, formats, tensors in order with their groups and what is frozen,
/// seed and the layout. The parameters themselves are the user's to save. It must outlive the part.
template <rule Rule, format Format, class Param>
detail::optimizer_part<Rule, Format, Param> states(optimizer<Rule, Format, Param>& of,
                                                   part_options options = {}) {
  return {of, std::move(options)};
}

}  // namespace memfit
