// A small model between canaries and the optimizer that steps it, of any rule, format and parameter
// column. Used by every test of the optimizer: what it holds can be compared bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "support/guarded.hpp"

namespace test {

/// The element type that a model's tensors have for a parameter column.
template <class Column>
struct element_of_column {
  using type = typename memfit::column_for<Column>::element;
};

using vectors = std::vector<std::vector<float>>;

template <class Rule, class Format, class Column = memfit::fp32>
class model {
 public:
  using element = typename element_of_column<Column>::type;
  using optimizer_type = memfit::optimizer<Rule, Format, Column>;
  static constexpr int slots = static_cast<int>(std::size(Rule::slots));

  model(memfit::host exec, Rule const& rule, vectors const& start, std::int64_t min_quantized = 1)
      : optimizer_(exec, rule, views(start), {.min_quantized = min_quantized}) {}

  optimizer_type& optimizer() { return optimizer_; }
  std::size_t size() const { return tensors_.size(); }
  guarded<element>& tensor(std::size_t i) { return tensors_[i]; }

  /// Parameters as the model sees them.
  std::vector<float> parameter(std::size_t i) {
    auto& t = tensor(i);
    std::vector<float> values;
    for (std::int64_t k = 0; k < t.count(); ++k) values.push_back(static_cast<float>(t[k]));
    return values;
  }

  /// Everything that a step may change: parameters, moments and counters.
  std::vector<std::uint8_t> bytes() {
    std::vector<std::uint8_t> all;
    for (std::size_t i = 0; i < size(); ++i) {
      append_bytes(all, tensor(i).data(), tensor(i).count());
      for (int s = 0; s < slots; ++s) {
        auto const values = optimizer_.moment_sync(i, s);
        append_bytes(all, values.data(), std::ssize(values));
      }
      auto const steps = optimizer_.steps_sync(i);
      append_bytes(all, &steps, 1);
    }
    auto const nonfinite = optimizer_.nonfinite_sync();
    append_bytes(all, &nonfinite, 1);
    return all;
  }

  bool intact() const {
    for (auto const& t : tensors_)
      if (!t.intact()) return false;
    return true;
  }

 private:
  std::vector<memfit::tensor_ref<element>> views(vectors const& start) {
    std::vector<memfit::tensor_ref<element>> refs;
    for (auto const& values : start) {
      names_.push_back(std::string("t").append(std::to_string(names_.size())));
      tensors_.emplace_back(values, static_cast<std::int64_t>(names_.size() % 3));
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) refs.push_back(tensors_[i].ref(names_[i]));
    return refs;
  }

  std::vector<std::string> names_;
  std::vector<guarded<element>> tensors_;
  optimizer_type optimizer_;
};

}  // namespace test
