#include "memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace gpt2 {

namespace {

class aligned_host_memory final : public memory {
 public:
  void* allocate(index bytes) override {
    constexpr std::size_t line = 64;
    std::size_t const rounded = (static_cast<std::size_t>(bytes) + line - 1) / line * line;
    void* const p = std::aligned_alloc(line, rounded);
    if (p == nullptr) throw std::bad_alloc{};
    std::memset(p, 0, rounded);
    return p;
  }

  void release(void* p) override { std::free(p); }

  void copy_from_host(void* to, const void* from, index bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  void copy_to_host(void* to, const void* from, index bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
};

}  // namespace

memory& host_memory() {
  static aligned_host_memory instance;
  return instance;
}

}  // namespace gpt2
