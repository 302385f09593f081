// An executor without drivers: counts the bytes that it gives out, may run out of memory, and steps
// fp32 moments and parameters one element after the other. Used by tests of what managers do
// themselves, for many rules and formats, which build in no time.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "memfit/core/error.hpp"
#include "memfit/exec/list.hpp"

namespace test {

/// What a plain executor has given out, and how many times it still will.
struct plain_memory {
  std::int64_t bytes = 0;
  std::int64_t allocations_left = INT64_MAX;
};

template <class Rule>
class plain_list final : public memfit::step_list<Rule> {
 public:
  explicit plain_list(bool steps) : steps_(steps) {}
  bool reaches(void const*) const override { return true; }
  void add(memfit::step_item<Rule> const& item) override { items_.push_back(item); }
  void retire(std::int64_t index) override { at(index) = {}; }
  void set_gradient(std::int64_t index, void const* data, memfit::scalar_kind) override {
    at(index).gradient = data;
  }
  void set_group(std::int64_t index, std::int32_t group) override { at(index).group = group; }
  std::int64_t bytes() const override { return 0; }
  void step(std::int64_t first, std::int64_t count, memfit::step_call<Rule> const& call) override {
    auto const* const rules = call.rules_at != nullptr ? call.rules_at : call.rules;
    for (auto i = first; i < first + count && steps_; ++i) {
      auto& item = at(i);
      if (auto const n = item.next_step(call.part); n != 0)
        item.begin(rules[item.group].at(n), call.seed, n, call.part);
      if constexpr (memfit::layerwise_rule<Rule>) item.constants = item.constants.with(norms(item));
      for (std::int64_t k = 0; k < item.active(); ++k) step_element(item, k);
    }
  }

 private:
  static constexpr int slots = memfit::slot_count<Rule>;

  /// Of a layerwise rule's parameter and direction.
  static memfit::layer_norms norms(memfit::step_item<Rule> const& item) {
    double parameter = 0, direction = 0;
    for (std::int64_t k = 0; k < item.active(); ++k) {
      double const p = static_cast<float const*>(item.visible)[k];
      double const u = direction_of(item, k);
      parameter += p * p;
      direction += u * u;
    }
    return {std::sqrt(parameter), std::sqrt(direction)};
  }
  static float direction_of(memfit::step_item<Rule> const& item, std::int64_t k) {
    float const p = static_cast<float const*>(item.visible)[k];
    float const g = static_cast<float const*>(item.gradient)[k];
    if constexpr (requires { item.constants.direction(p, g); }) {
      return item.constants.direction(p, g);
    } else {
      float s[slots];
      for (int j = 0; j < slots; ++j) s[j] = static_cast<float const*>(item.moments[j].codes)[k];
      return item.constants.direction(p, g, s);
    }
  }

  static void step_element(memfit::step_item<Rule> const& item, std::int64_t k) {
    float& p = static_cast<float*>(item.visible)[k];
    float const g = static_cast<float const*>(item.gradient)[k];
    if constexpr (slots == 0) {
      item.constants(p, g);
    } else {
      float s[slots];
      for (int j = 0; j < slots; ++j) s[j] = static_cast<float*>(item.moments[j].codes)[k];
      item.constants(p, g, s);
      for (int j = 0; j < slots; ++j) static_cast<float*>(item.moments[j].codes)[k] = s[j];
    }
  }
  memfit::step_item<Rule>& at(std::int64_t i) { return items_[static_cast<std::size_t>(i)]; }

  bool steps_;
  std::vector<memfit::step_item<Rule>> items_;
};

class plain_executor {
 public:
  memfit::buffer allocate(std::int64_t bytes) const {
    if (bytes == 0) return {};
    void* const p =
        memory_->allocations_left-- > 0 ? std::malloc(static_cast<std::size_t>(bytes)) : nullptr;
    if (p == nullptr) throw memfit::memory_error("test::plain_executor: no memory");
    memory_->bytes += bytes;
    return {p, bytes, [](void* data, std::int64_t) noexcept { std::free(data); }};
  }
  void copy(void* to, void const* from, std::int64_t bytes) const {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void copy_from_host(void* to, void const* from, std::int64_t n) const { copy(to, from, n); }
  void copy_to_host(void* to, void const* from, std::int64_t n) const { copy(to, from, n); }
  void fill(void* to, unsigned char value, std::int64_t bytes) const {
    if (bytes > 0) std::memset(to, value, static_cast<std::size_t>(bytes));
  }
  /// Lists of other formats and columns hold their tensors and do not step them.
  template <class Rule, class Format, class Column>
  memfit::owner<memfit::step_list<Rule>> steps() const {
    constexpr bool plain = std::is_same_v<Format, memfit::fp32> &&
                           std::is_same_v<Column, memfit::column_for<memfit::fp32>>;
    return memfit::owner<memfit::step_list<Rule>>(new plain_list<Rule>(plain));
  }
  plain_memory& memory() const { return *memory_; }

 private:
  std::shared_ptr<plain_memory> memory_ = std::make_shared<plain_memory>();
};

}  // namespace test
