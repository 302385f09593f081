// Memory that a stage works in: tensors are laid on a stack over storage that is already there, or,
// to find out how much a stage takes, over none. Used by the model of the GPT-2 example.
#pragma once

#include <memfit/checkpoint/run/carver.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memory.hpp"

namespace gpt2 {

// Unlike other memory it does not make zeros. A tensor that goes leaves its place to others once
// all that were made after it have gone, too.
class stack_memory final : public memory {
 public:
  // Over what is left of the storage, which lies in `kind` of memory, and of which it takes the
  // most that is in use at a time. Over none, nobody may look at what it hands out.
  stack_memory(memfit::checkpoint::carver& storage, memory& kind)
      : storage_{storage},
        taken_before_{storage.bytes()},
        bottom_{storage.counts_only() ? nowhere() : storage.take<char>(0)},
        kind_{kind} {}

  [[nodiscard]] void* bottom() const { return bottom_; }
  // The most that was in use at a time.
  [[nodiscard]] index taken() const { return storage_.bytes() - taken_before_; }

  // Throws memfit::argument_error where the storage ends before.
  void* allocate(index bytes) override {
    index const begin = pieces_.empty() ? 0 : pieces_.back().end;
    index const end = begin + memfit::checkpoint::rounded(bytes);
    if (end > taken()) storage_.take<char>(end - taken());
    pieces_.push_back({bottom_ + begin, end});
    return bottom_ + begin;
  }

  void release(void* p) override {
    auto const of_p = [&](const piece& each) { return each.at == p; };
    pieces_.erase(std::find_if(pieces_.begin(), pieces_.end(), of_p));
  }

  void copy_from_host(void* to, const void* from, index bytes) override {
    kind_.copy_from_host(to, from, bytes);
  }
  void copy_to_host(void* to, const void* from, index bytes) override {
    kind_.copy_to_host(to, from, bytes);
  }

 private:
  struct piece {
    char* at;
    index end;
  };

  // An address that offsets can be added to.
  static char* nowhere() {
    return reinterpret_cast<char*>(std::uintptr_t{memfit::checkpoint::alignment});
  }

  memfit::checkpoint::carver& storage_;
  index taken_before_;
  char* bottom_;
  memory& kind_;
  std::vector<piece> pieces_;
};

}  // namespace gpt2
