// An executor behind a small virtual face, so that an optimizer's type does not name it.
// Used by the optimizer, which picks the engine from the executor it is given.
#pragma once

#include <cstdint>
#include <utility>

#include "memfit/exec/list.hpp"

namespace memfit::detail {

/// Memory and steps of one executor; tensors that are not quantized keep fp32 moments.
template <class Rule>
class engine {
 public:
  virtual ~engine() = default;
  virtual buffer allocate(std::int64_t bytes) const = 0;
  virtual void copy_from_host(void* to, void const* from, std::int64_t bytes) const = 0;
  virtual void copy_to_host(void* to, void const* from, std::int64_t bytes) const = 0;
  virtual void fill(void* to, unsigned char value, std::int64_t bytes) const = 0;

  owner<step_list<Rule>> quantized, exact;
};

template <class E, class Rule, class Format, class Column>
class engine_on final : public engine<Rule> {
 public:
  explicit engine_on(E exec) : exec_(std::move(exec)) {
    this->quantized = exec_.template steps<Rule, Format, Column>();
    this->exact = exec_.template steps<Rule, fp32, Column>();
  }
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

 private:
  E exec_;
};

}  // namespace memfit::detail
