// An executor behind a small virtual face, so that an optimizer's type does not name it.
// Used by the optimizer, which picks the engine from the executor it is given.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "memfit/exec/concept.hpp"

namespace memfit::detail {

/// Memory and steps of one executor for one rule, format and parameter column; tensors that are not
/// quantized keep fp32 moments.
template <class Rule, class Format, class Column>
class engine {
 public:
  virtual ~engine() = default;
  virtual buffer allocate(std::int64_t bytes) const = 0;
  virtual void copy_from_host(void* to, void const* from, std::int64_t bytes) const = 0;
  virtual void copy_to_host(void* to, void const* from, std::int64_t bytes) const = 0;
  virtual void fill(void* to, unsigned char value, std::int64_t bytes) const = 0;
  /// False where the gate made the step a no-op.
  virtual bool step(step_item<Rule> const* quantized, std::int64_t quantized_count,
                    step_item<Rule> const* exact, std::int64_t exact_count, gate g,
                    std::uint64_t* nonfinite) const = 0;
};

template <class E, class Rule, class Format, class Column>
class engine_on final : public engine<Rule, Format, Column> {
 public:
  explicit engine_on(E exec) : exec_(std::move(exec)) {}
  buffer allocate(std::int64_t bytes) const override { return exec_.allocate(bytes); }
  void copy_from_host(void* to, void const* from, std::int64_t bytes) const override {
    exec_.copy_from_host(to, from, bytes);
  }
  void copy_to_host(void* to, void const* from, std::int64_t bytes) const override {
    exec_.copy_to_host(to, from, bytes);
  }
  void fill(void* to, unsigned char value, std::int64_t bytes) const override {
    exec_.fill(to, value, bytes);
  }
  bool step(step_item<Rule> const* quantized, std::int64_t quantized_count,
            step_item<Rule> const* exact, std::int64_t exact_count, gate g,
            std::uint64_t* nonfinite) const override {
    return exec_.template step<Rule, Format, Column>(quantized, quantized_count, g, nonfinite) &&
           exec_.template step<Rule, fp32, Column>(exact, exact_count, g, nonfinite);
  }

 private:
  E exec_;
};

}  // namespace memfit::detail
