#include "optimizer/given_out.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> given_out = 0;

}  // namespace

std::int64_t test::memory_given_out() {
  return given_out;
}

void* operator new(std::size_t bytes, std::align_val_t alignment, std::nothrow_t const&) noexcept {
  given_out += static_cast<std::int64_t>(bytes);
  auto const unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}
void operator delete(void* data, std::align_val_t) noexcept {
  std::free(data);
}
