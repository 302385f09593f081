#include "budgeted.hpp"

#include <unordered_map>

namespace gpt2 {

namespace {

struct held {
  budget* counts;
  category in;
  memfit::buffer inner;
};

// A buffer tells whoever releases it no more than where it lay.
std::unordered_map<void*, held>& all_held() {
  static std::unordered_map<void*, held> all;
  return all;
}

void let_go(void* data, index bytes) noexcept {
  auto const found = all_held().find(data);
  found->second.counts->give_back(found->second.in, bytes);
  all_held().erase(found);
}

}  // namespace

category category_of(memfit::memory_use use) {
  switch (use) {
    case memfit::memory_use::kept:
      return category::kept;
    case memfit::memory_use::moments:
      return category::moments;
    case memfit::memory_use::scales:
      return category::scales;
    case memfit::memory_use::sums:
      return category::sums;
    case memfit::memory_use::activations:
      return category::activations;
    case memfit::memory_use::other:
      break;
  }
  return category::workspace;
}

memfit::buffer counted(budget& counts, category in, memfit::buffer inner) {
  if (inner.data() == nullptr) return inner;
  auto* const data = inner.data();
  auto const bytes = inner.bytes();
  all_held().emplace(data, held{&counts, in, std::move(inner)});
  return {data, bytes, let_go};
}

}  // namespace gpt2
