// Optimizers chosen at run time by the names of their rule, format and column, from explicit lists.
// Used by programs that learn what to train with from a command line or a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/core/owner.hpp"
#include "memfit/names.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/state_file/optimizer.hpp"

namespace memfit {

/// A hyper-parameter's name and value.
struct hyperparameter_value {
  std::string_view name;
  double value;
};
using hyperparameter_values = std::vector<hyperparameter_value>;

/// An optimizer of some rule, format and parameter column. Members are those of optimizer, but for
/// hyper-parameters, which go by name.
class any_optimizer {
 public:
  any_optimizer() = default;
  any_optimizer(any_optimizer const&) = delete;
  any_optimizer& operator=(any_optimizer const&) = delete;
  virtual ~any_optimizer() = default;

  virtual std::string rule_name() const = 0;
  /// That of fp32 for a rule that keeps no moments.
  virtual std::string format_name() const = 0;
  virtual std::string column_name() const = 0;
  /// The moments that the rule keeps, by name.
  virtual std::vector<std::string> slot_names() const = 0;

  /// Throws argument_error for a tensor of another element type than the column's, too.
  template <tensor T>
  std::size_t add(T&& parameter) {
    auto const t = ref(parameter);
    static_assert(scalar_element<element_of<T>>,
                  "memfit::any_optimizer: elements are float, memfit::bf16 or memfit::fp16");
    return add_tensor(t.data, kind_of<element_of<T>>, t.count, t.name);
  }
  template <tensors Gradients>
  void step(Gradients&& gradients, gate g = {}) {
    views_.clear();
    for (auto&& gradient : gradients) views_.push_back(view(ref(gradient)));
    step(views_, g);
  }
  virtual void step(std::vector<scalar_view> const& gradients, gate g = {}) = 0;
  template <tensor G>
  void step_one(std::size_t index, G&& gradient, gate g = {}) {
    step_one(index, view(ref(gradient)), g);
  }
  virtual void step_one(std::size_t index, scalar_view const& gradient, gate g = {}) = 0;

  /// A hyper-parameter of a group. Throws argument_error where the rule has none of this name.
  virtual double get(std::string_view name, std::size_t group = 0) const = 0;
  /// Throws hyperparameter_error, too, where the hyper-parameter has no such number, as 1.5 of a
  /// count; step checks ranges.
  virtual void set(std::string_view name, double value, std::size_t group = 0) = 0;
  /// All of them, in the rule's order; none where it does not list them.
  virtual hyperparameter_values hyperparameters(std::size_t group = 0) const = 0;

  virtual std::size_t add_group(std::vector<std::string> patterns,
                                hyperparameter_values const& changes) = 0;
  virtual void set_group(std::size_t index, std::size_t group) = 0;
  virtual std::size_t groups() const = 0;
  virtual std::size_t group_of(std::size_t index) const = 0;
  virtual void freeze(std::size_t index) = 0;
  virtual void freeze(std::string_view pattern) = 0;
  virtual void unfreeze(std::size_t index) = 0;
  virtual void unfreeze(std::string_view pattern) = 0;
  virtual bool is_frozen(std::size_t index) const = 0;
  virtual void keep_fp32(std::string_view pattern) = 0;

  virtual std::size_t size() const = 0;
  virtual description describe() const = 0;
  virtual std::int64_t steps_sync(std::size_t index) const = 0;
  virtual std::uint64_t nonfinite_sync() const = 0;
  virtual std::vector<float> moment_sync(std::size_t index, int slot) const = 0;

  /// Its part of a file of states; see states.
  virtual owner<state_part> part(part_options options = {}) = 0;

 private:
  template <class E>
  static scalar_view view(tensor_ref<E> const& t) {
    static_assert(scalar_element<E>, "memfit::any_optimizer: gradients are fp32, bf16 or fp16");
    return {t.data, kind_of<E>, t.count};
  }
  virtual std::size_t add_tensor(void* data, scalar_kind kind, std::int64_t count,
                                 std::string_view name) = 0;

  std::vector<scalar_view> views_;
};

namespace detail {

/// A part of a file that is made elsewhere.
class any_part final : public state_part {
 public:
  explicit any_part(owner<state_part> part) : part_(std::move(part)) {}
  void list(std::vector<stored_tensor>& tensors, stored_words& words) override {
    part_->list(tensors, words);
  }
  void write(tensor_file_writer& to, std::size_t first) override { part_->write(to, first); }
  void prepare(tensor_file const& from) override { part_->prepare(from); }
  void take(tensor_file const& from) override { part_->take(from); }

 private:
  owner<state_part> part_;
};

}  // namespace detail

/// An optimizer of any type as a part of a file, which save_state and load_state of state_file.hpp
/// take: the same as that of an optimizer whose type is known.
inline detail::any_part states(any_optimizer& of, part_options options = {}) {
  return detail::any_part(of.part(std::move(options)));
}

/// Lists of types, each of which has a name (see names.hpp).
template <class... Rules>
struct rules {};
template <class... Formats>
struct formats {};
template <class... Columns>
struct columns {};

/// What there is to choose from: every rule with every format that fits it and every column. Each
/// triple costs an optimizer's time to build, where make is called; what is not listed, nothing.
template <class Rules, class Formats = formats<fp32>, class Columns = columns<fp32>>
struct registry;

namespace detail {

inline char const* name_of_kind(scalar_kind kind) {
  return kind == scalar_kind::fp32 ? "fp32" : kind == scalar_kind::bf16 ? "bf16" : "fp16";
}

inline std::string listed(std::vector<std::string> const& names) {
  std::string text;
  for (auto const& name : names) (text += text.empty() ? "" : ", ") += name;
  return text;
}

inline std::size_t find_choice(char const* what, std::vector<std::string> const& known,
                               std::string_view name) {
  std::size_t found = known.size();
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] != name) continue;
    if (found != known.size())
      throw argument_error("memfit::make: two " + std::string(what) + "s are called '" + known[i] +
                           "'");
    found = i;
  }
  if (found == known.size())
    throw argument_error("memfit::make: there is no " + std::string(what) + " '" +
                         std::string(name) + "' among " + listed(known));
  return found;
}

inline hyperparameter const& find_hyperparameter(char const* call, std::string const& rule,
                                                 hyperparameter_list const& list,
                                                 std::string_view name) {
  if (auto const* const found = list.find(name)) return *found;
  std::vector<std::string> known;
  for (auto const& h : list) known.emplace_back(h.name());
  throw argument_error("memfit::" + std::string(call) + ": rule " + rule +
                       " has no hyper-parameter '" + std::string(name) + "' among " +
                       listed(known));
}

/// The hyper-parameters of a rule, or what to do that it has some.
template <class Rule>
hyperparameter_list list_of(char const* call, [[maybe_unused]] Rule& r) {
  if constexpr (lists_hyperparameters<Rule>)
    return r.hyperparameters();
  else
    throw argument_error("memfit::" + std::string(call) + ": rule " + name_of<Rule>::value() +
                         " does not list its hyper-parameters; give it `memfit::"
                         "hyperparameter_list hyperparameters() { return {{\"lr\", lr}}; }`");
}

template <class Rule>
void change(char const* call, Rule& r, hyperparameter_values const& changes) {
  Rule changed = r;
  for (auto const& [name, value] : changes) {
    auto const rule = name_of<Rule>::value();
    auto const list = list_of(call, changed);
    if (!find_hyperparameter(call, rule, list, name).set(value))
      throw hyperparameter_error("memfit::" + std::string(call) + ": " + std::string(name) +
                                 " of rule " + rule + " cannot be " + std::to_string(value));
  }
  r = changed;
}

template <class Rule, class Format, class Param>
class chosen_optimizer final : public any_optimizer {
  using element = typename optimizer<Rule, Format, Param>::element;

 public:
  template <executor E>
  chosen_optimizer(E const& exec, Rule const& r, optimizer_options const& options)
      : opt_(exec, r, options) {}

  std::string rule_name() const override { return name_of<Rule>::value(); }
  std::string format_name() const override { return name_of<Format>::value(); }
  std::string column_name() const override { return name_of<Param>::value(); }
  std::vector<std::string> slot_names() const override {
    std::vector<std::string> names;
    names.reserve(std::size(Rule::slots));
    for (auto const& s : Rule::slots) names.emplace_back(s.name);
    return names;
  }

  using any_optimizer::step;
  using any_optimizer::step_one;
  void step(std::vector<scalar_view> const& gradients, gate g) override { opt_.step(gradients, g); }
  void step_one(std::size_t index, scalar_view const& gradient, gate g) override {
    opt_.step_one(index, gradient, g);
  }

  double get(std::string_view name, std::size_t group) const override {
    Rule r = opt_.rule(group);
    auto const list = list_of("any_optimizer::get", r);
    return find_hyperparameter("any_optimizer::get", rule_name(), list, name).get();
  }
  void set(std::string_view name, double value, std::size_t group) override {
    change("any_optimizer::set", opt_.rule(group), {{name, value}});
  }
  hyperparameter_values hyperparameters(std::size_t group) const override {
    hyperparameter_values all;
    if constexpr (lists_hyperparameters<Rule>)
      for_each_hyperparameter(opt_.rule(group), [&](auto name, double value) {
        all.push_back({name, value});
      });
    return all;
  }

  std::size_t add_group(std::vector<std::string> patterns,
                        hyperparameter_values const& changes) override {
    return opt_.add_group(std::move(patterns),
                          [&](Rule& r) { change("any_optimizer::add_group", r, changes); });
  }
  void set_group(std::size_t index, std::size_t group) override { opt_.set_group(index, group); }
  std::size_t groups() const override { return opt_.groups(); }
  std::size_t group_of(std::size_t index) const override { return opt_.group_of(index); }
  void freeze(std::size_t index) override { opt_.freeze(index); }
  void freeze(std::string_view pattern) override { opt_.freeze(pattern); }
  void unfreeze(std::size_t index) override { opt_.unfreeze(index); }
  void unfreeze(std::string_view pattern) override { opt_.unfreeze(pattern); }
  bool is_frozen(std::size_t index) const override { return opt_.is_frozen(index); }
  void keep_fp32(std::string_view pattern) override { opt_.keep_fp32(pattern); }

  std::size_t size() const override { return opt_.size(); }
  description describe() const override { return opt_.describe(); }
  std::int64_t steps_sync(std::size_t index) const override { return opt_.steps_sync(index); }
  std::uint64_t nonfinite_sync() const override { return opt_.nonfinite_sync(); }
  std::vector<float> moment_sync(std::size_t index, int slot) const override {
    return opt_.moment_sync(index, slot);
  }
  owner<state_part> part(part_options options) override {
    return owner<state_part>(new optimizer_part<Rule, Format, Param>(opt_, std::move(options)));
  }

 private:
  std::size_t add_tensor(void* data, scalar_kind kind, std::int64_t count,
                         std::string_view name) override {
    if (kind != memfit::kind_of<element>)
      refuse("any_optimizer::add", name,
             std::string("elements are ") + name_of_kind(kind) + ", column " + column_name() +
                 " has " + name_of_kind(memfit::kind_of<element>));
    return opt_.add(tensor_ref<element>{static_cast<element*>(data), count, name});
  }

  optimizer<Rule, Format, Param> opt_;
};

/// A rule without moments has nothing to keep in any format.
template <class Rule, class Format>
using kept_format = std::conditional_t<slot_count<Rule> == 0, fp32, Format>;

template <class Rule, class Format, class Param, executor E>
owner<any_optimizer> new_optimizer(E const& exec, Rule const& r, optimizer_options const& options) {
  if constexpr (requires { typename optimizer<Rule, kept_format<Rule, Format>, Param>; })
    return owner<any_optimizer>(
        new chosen_optimizer<Rule, kept_format<Rule, Format>, Param>(exec, r, options));
  else
    throw argument_error("memfit::make: format " + name_of<Format>::value() +
                         " does not fit rule " + name_of<Rule>::value());
}

template <class T>
struct type_box {
  using type = T;
};
template <class... T>
struct type_list {
  static_assert((named<T> && ...),
                "memfit::registry: give each type a name: static constexpr char const* name, or a "
                "specialization of memfit::name_of");
  static std::vector<std::string> names() { return {name_of<T>::value()...}; }
  /// Calls with(type_box<T>) for the T of this name.
  template <class With>
  static void call(char const* what, std::string_view name, With const& with) {
    auto const chosen = find_choice(what, names(), name);
    std::size_t i = 0;
    ((i++ == chosen ? with(type_box<T>{}) : void()), ...);
  }
};

}  // namespace detail

template <class... Rules, class... Formats, class... Columns>
struct registry<rules<Rules...>, formats<Formats...>, columns<Columns...>> {
  using rule_types = detail::type_list<Rules...>;
  using format_types = detail::type_list<Formats...>;
  using column_types = detail::type_list<Columns...>;

  /// What may be named, for a program's own help.
  static std::vector<std::string> rule_names() { return rule_types::names(); }
  static std::vector<std::string> format_names() { return format_types::names(); }
  static std::vector<std::string> column_names() { return column_types::names(); }
};

/// An optimizer by the names of its rule, format and parameter column, with the rule's defaults but
/// for `values`. Throws argument_error for a name that Choices or the rule does not have, naming
/// those it has, and whatever the optimizer's constructor throws.
template <class Choices, executor E, tensors Tensors>
owner<any_optimizer> make(std::string_view rule_name, std::string_view format_name,
                          std::string_view column_name, E const& exec,
                          hyperparameter_values const& values, Tensors&& parameters,
                          optimizer_options const& options = {}) {
  owner<any_optimizer> made;
  Choices::rule_types::call("rule", rule_name, [&](auto r) {
    using Rule = typename decltype(r)::type;
    Rule chosen{};
    detail::change("make", chosen, values);
    Choices::format_types::call("format", format_name, [&](auto f) {
      Choices::column_types::call("column", column_name, [&](auto c) {
        made = detail::new_optimizer<Rule, typename decltype(f)::type, typename decltype(c)::type>(
            exec, chosen, options);
      });
    });
  });
  for (auto&& t : parameters) made->add(t);
  return made;
}

/// The same for Choices of one parameter column.
template <class Choices, executor E, tensors Tensors>
owner<any_optimizer> make(std::string_view rule_name, std::string_view format_name, E const& exec,
                          hyperparameter_values const& values, Tensors&& parameters,
                          optimizer_options const& options = {}) {
  auto const names = Choices::column_names();
  if (names.size() != 1)
    throw argument_error("memfit::make: choose a column among " + detail::listed(names));
  return make<Choices>(rule_name, format_name, names[0], exec, values, parameters, options);
}

}  // namespace memfit
