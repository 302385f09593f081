// Memory of some kind whose every allocation counts in a category of a budget.
// Used by the trainer and the host's backend of the GPT-2 example.
#pragma once

#include <unordered_map>

#include "budget.hpp"

namespace gpt2 {

class counted_memory final : public memory {
 public:
  counted_memory(memory& kind, budget& counts, category in)
      : kind_{kind}, budget_{counts}, category_{in} {}

  // Throws also what budget::take throws.
  void* allocate(index bytes) override;
  void release(void* p) override;
  void copy_from_host(void* to, const void* from, index bytes) override {
    kind_.copy_from_host(to, from, bytes);
  }
  void copy_to_host(void* to, const void* from, index bytes) override {
    kind_.copy_to_host(to, from, bytes);
  }

 private:
  memory& kind_;
  budget& budget_;
  category category_;
  std::unordered_map<void*, index> bytes_of_;
};

}  // namespace gpt2
