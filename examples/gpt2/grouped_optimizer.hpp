// A memfit optimizer for matrices and one for gains and biases, which know no weight decay, behind
// the common face. Used by optimizer_<rule>, each of which includes the executor and instantiates
// this for one rule and every state format.
#pragma once

#include <memfit/optimizer.hpp>

#include <vector>

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
      : matrices_{exec, rule}, vectors_{exec, without_decay(rule)} {
    for (tensor<T>* t : parameters.all()) {
      is_matrix_.push_back(t->is_matrix());
      (t->is_matrix() ? matrices_ : vectors_).add(*t);
    }
  }

  void step(const gradient_list& gradients, const memfit::gate& gate, double lr) override {
    matrices_.rule().lr = lr;
    vectors_.rule().lr = lr;
    std::visit(
        [&](const auto& all) {
          matrices_.step(select(all, true), gate);
          vectors_.step(select(all, false), gate);
        },
        gradients);
  }

  [[nodiscard]] index state_bytes() const override {
    return matrices_.describe().state_bytes + vectors_.describe().state_bytes;
  }
  [[nodiscard]] index kept_bytes() const override {
    return matrices_.describe().kept_bytes + vectors_.describe().kept_bytes;
  }

 private:
  static Rule without_decay(Rule rule) {
    rule.weight_decay = 0;
    return rule;
  }

  template <class List>
  [[nodiscard]] List select(const List& from, bool matrices) const {
    List chosen;
    for (std::size_t i = 0; i < from.size(); ++i)
      if (is_matrix_[i] == matrices) chosen.push_back(from[i]);
    return chosen;
  }

  memfit::optimizer<Rule, Format, Column> matrices_, vectors_;
  std::vector<bool> is_matrix_;
};

template <class Executor, class Rule, class T>
std::unique_ptr<optimizer<T>> make_grouped(const Executor& exec, const Rule& rule,
                                           [[maybe_unused]] state_choice state,
                                           [[maybe_unused]] column_choice column,
                                           weights<T>& parameters) {
  // The options offer corrected parameters here only.
  if constexpr (std::is_same_v<Rule, memfit::adamw> && std::is_same_v<T, bf16>) {
    using corrected = memfit::corrected<bf16>;
    if (column == column_choice::corrected && state == state_choice::float8)
      return std::make_unique<grouped_optimizer<Rule, memfit::float8, T, corrected>>(exec, rule,
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
      case state_choice::dynamic8:
        return with(memfit::dynamic8{});
      case state_choice::float8:
        return with(memfit::float8{});
      case state_choice::linear8:
        return with(memfit::linear8{});
    }
    return nullptr;
  }
}

#define GPT2_OPTIMIZER(Executor, Rule, T)                                                         \
  template std::unique_ptr<optimizer<T>> make_grouped(const Executor&, const Rule&, state_choice, \
                                                      column_choice, weights<T>&);

}  // namespace gpt2
