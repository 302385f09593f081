// What is alive while a checkpoint schedule runs, one action after the other.
// Used by the pictures of a schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memfit/checkpoint/plan.hpp"

namespace gpt2 {

inline bool is_forward(memfit::checkpoint::act what) {
  return what == memfit::checkpoint::act::pass || what == memfit::checkpoint::act::run;
}

inline bool is_compute(memfit::checkpoint::act what) {
  return is_forward(what) || what == memfit::checkpoint::act::backward;
}

class schedule_state {
 public:
  explicit schedule_state(const memfit::checkpoint::chain& stages)
      : stages_{stages},
        kept_(stages.size() + 1),
        copied_(stages.size() + 1),
        saved_(stages.size()),
        live_{memfit::checkpoint::gradient_bytes(stages)} {}

  // Bytes in use while this valid next action takes place.
  std::int64_t apply(const memfit::checkpoint::action& a) {
    using memfit::checkpoint::act;
    auto const i = static_cast<std::size_t>(a.index);
    switch (a.what) {
      case act::pass:
        keep(i + 1);
        return live_ + stages_[i].scratch;
      case act::run:
        saved_[i] = a.variant;
        live_ += variant_of(i).saved;
        if (a.output) keep(i + 1);
        return live_ + variant_of(i).forward_scratch;
      case act::backward: {
        std::int64_t const most = live_ + variant_of(i).backward_scratch;
        live_ -= variant_of(i).saved;
        saved_[i].reset();
        return most;
      }
      case act::load:
        keep(i);
        return live_;
      case act::drop:
        kept_[i] = false;
        live_ -= stages_[i - 1].output;
        return live_;
      case act::store:
      case act::discard:
        copied_[i] = a.what == act::store;
        return live_;
      case act::turn:
        return live_;
    }
    return live_;
  }

  // Of activation i, the input of stage i.
  [[nodiscard]] bool kept(std::size_t i) const { return kept_[i]; }
  [[nodiscard]] bool copied(std::size_t i) const { return copied_[i]; }
  // Of stage i.
  [[nodiscard]] bool saved(std::size_t i) const { return saved_[i].has_value(); }

 private:
  [[nodiscard]] const memfit::checkpoint::variant& variant_of(std::size_t i) const {
    return stages_[i].variants[static_cast<std::size_t>(*saved_[i])];
  }

  void keep(std::size_t i) {
    kept_[i] = true;
    live_ += stages_[i - 1].output;
  }

  const memfit::checkpoint::chain& stages_;
  std::vector<bool> kept_, copied_;
  std::vector<std::optional<int>> saved_;
  std::int64_t live_ = 0;
};

}  // namespace gpt2
