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
    for (std::size_t group = 0; group < opt_.groups(); ++group) opt_.rule(group).lr = lr;
    std::visit([&](const auto& all) { opt_.step(all, gate); }, gradients);
  }

  [[nodiscard]] index state_bytes() const override { return opt_.describe().state_bytes; }
  [[nodiscard]] index kept_bytes() const override { return opt_.describe().kept_bytes; }
  void add_states(state_parts& to) override {
    using part = decltype(memfit::states(opt_));
    to.push_back(std::make_unique<part>(memfit::states(opt_)));
  }

 private:
  memfit::optimizer<Rule, Format, Column> opt_;
};

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
    switch (state) {
      case state_choice::fp32:
        return with(memfit::fp32{});
      case state_choice::bf16:
        return with(memfit::bf16{});
      case state_choice::root8:
        return with(memfit::root8{});
      case state_choice::dynamic8:
        return with(memfit::dynamic8{});
      case state_choice::float8:
        return with(memfit::float8{});
      case state_choice::linear8:
        return with(memfit::linear8{});
      case state_choice::packed4:
        return with(memfit::packed4{});
    }
    return nullptr;
  }
}

#define GPT2_OPTIMIZER(Executor, Rule, T)                                                         \
  template std::unique_ptr<optimizer<T>> make_grouped(const Executor&, const Rule&, state_choice, \
                                                      column_choice, weights<T>&);

}  // namespace gpt2
