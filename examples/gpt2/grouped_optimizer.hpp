// A memfit optimizer, with a group for gains and biases, which know no weight decay, behind the
// common face. Used by optimizer_<rule>, each of which includes the executor and instantiates this
// for one rule and every state format.
#pragma once

#include <memfit/optimizer.hpp>
#include <memfit/state_file/optimizer.hpp>

#include "memfit_tensor.hpp"
#include "rules.hpp"

namespace gpt2 {

// How an optimizer sees parameters of type T unless told otherwise: all that they lack of float's
// precision is kept beside.
template <class T>
struct column_of;
template <>
struct column_of<float> {
  using type = memfit::fp32;
};
template <>
struct column_of<bf16> {
  using type = memfit::split<bf16>;
};
template <>
struct column_of<fp16> {
  using type = memfit::master<fp16>;
};

template <class Rule, class Format, class T, class Column = typename column_of<T>::type>
class grouped_optimizer final : public optimizer<T> {
 public:
  template <class Executor>
  grouped_optimizer(const Executor& exec, const Rule& rule, weights<T>& parameters)
      : opt_{exec, rule} {
    const auto vectors = opt_.add_group({}, [](Rule& r) { r.weight_decay = 0; });
    for (tensor<T>* t : parameters.all()) {
      const auto number = opt_.add(*t);
      if (!t->is_matrix()) opt_.set_group(number, vectors);
    }
  }

  void step(const gradient_list& gradients, const memfit::gate& gate, double lr) override {
    set_lr(lr);
    std::visit([&](const auto& all) { opt_.step(all, gate); }, gradients);
  }

  [[nodiscard]] std::size_t size() const override { return opt_.size(); }
  [[nodiscard]] index count(std::size_t number) const override { return opt_.count(number); }
  void set_lr(double lr) override {
    for (std::size_t group = 0; group < opt_.groups(); ++group) opt_.rule(group).lr = lr;
  }
  void check_some(const std::vector<std::size_t>& indices,
                  const std::vector<memfit::scalar_view>& gradients) override {
    opt_.check_some(indices, gradients);
  }
  void step_some(const std::vector<std::size_t>& indices,
                 const std::vector<memfit::scalar_view>& gradients, const memfit::gate& gate,
                 [[maybe_unused]] const memfit::window_part& part) override {
    if constexpr (memfit::folding_rule<Rule>)
      opt_.step_some(indices, gradients, gate, part);
    else
      opt_.step_some(indices, gradients, gate);
  }

  [[nodiscard]] std::vector<float> values(std::size_t parameter, index first,
                                          index count) const override {
    return opt_.parameter_sync(parameter, first, count);
  }
  void add_states(state_parts& to) override {
    using part = decltype(memfit::states(opt_));
    to.push_back(std::make_unique<part>(memfit::states(opt_)));
  }

 private:
  memfit::optimizer<Rule, Format, Column> opt_;
};

// A choice and what it stands for.
template <state_choice State, class Format>
struct in {};

// The choice that stands for a rule, or for an element type.
template <class Type>
constexpr auto choice_of() {
  if constexpr (std::is_same_v<Type, memfit::adamw>)
    return rule_choice::adamw;
  else if constexpr (std::is_same_v<Type, memfit::adam>)
    return rule_choice::adam;
  else if constexpr (std::is_same_v<Type, memfit::momentum>)
    return rule_choice::momentum;
  else if constexpr (std::is_same_v<Type, bf16>)
    return precision_choice::bf16;
  else if constexpr (std::is_same_v<Type, fp16>)
    return precision_choice::fp16;
  else
    return precision_choice::fp32;
}

template <class Executor, class Rule, class T>
std::unique_ptr<optimizer<T>> make_grouped(const Executor& exec, const Rule& rule,
                                           [[maybe_unused]] state_choice state,
                                           [[maybe_unused]] column_choice column,
                                           weights<T>& parameters) {
  // The options offer corrected parameters here only.
  if constexpr (std::is_same_v<Rule, memfit::adamw> && std::is_same_v<T, bf16>) {
    using corrected = memfit::corrected<bf16>;
    if (column == column_choice::corrected && state == state_choice::root8)
      return std::make_unique<grouped_optimizer<Rule, memfit::root8, T, corrected>>(exec, rule,
                                                                                    parameters);
    if (column == column_choice::corrected)
      return std::make_unique<grouped_optimizer<Rule, memfit::fp32, T, corrected>>(exec, rule,
                                                                                   parameters);
  }
  auto const with = [&]<class Format>(Format) -> std::unique_ptr<optimizer<T>> {
    return std::make_unique<grouped_optimizer<Rule, Format, T>>(exec, rule, parameters);
  };
  if constexpr (memfit::slot_count<Rule> == 0) {
    return with(memfit::fp32{});  // there is nothing to be kept in any format
  } else {
    std::unique_ptr<optimizer<T>> made;
    auto const offer = [&]<state_choice State, class Format>(in<State, Format>) {
      if constexpr (is_offered(choice_of<Rule>(), choice_of<T>(), State))
        if (state == State) made = with(Format{});
    };
    offer(in<state_choice::fp32, memfit::fp32>{});
    offer(in<state_choice::bf16, memfit::bf16>{});
    offer(in<state_choice::root8, memfit::root8>{});
    offer(in<state_choice::dynamic8, memfit::dynamic8>{});
    offer(in<state_choice::float8, memfit::float8>{});
    offer(in<state_choice::linear8, memfit::linear8>{});
    offer(in<state_choice::packed4, memfit::packed4>{});
    return made;
  }
}

#define GPT2_OPTIMIZER(Executor, Rule, T)                                                         \
  template std::unique_ptr<optimizer<T>> make_grouped(const Executor&, const Rule&, state_choice, \
                                                      column_choice, weights<T>&);

}  // namespace gpt2
