#include "counted_memory.hpp"

namespace gpt2 {

void* counted_memory::allocate(index bytes) {
  budget_.take(category_, bytes);
  void* p = nullptr;
  try {
    p = kind_.allocate(bytes);
    bytes_of_.emplace(p, bytes);
    return p;
  } catch (...) {
    if (p != nullptr) kind_.release(p);
    budget_.give_back(category_, bytes);
    throw;
  }
}

void counted_memory::release(void* p) {
  auto const found = bytes_of_.find(p);
  budget_.give_back(category_, found->second);
  bytes_of_.erase(found);
  kind_.release(p);
}

}  // namespace gpt2
