// Where memory runs out while states are loaded or saved, nothing has changed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/state_file.hpp"
#include "support/files.hpp"

namespace {

int allocations_left = -1;  // below 0: any number

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* const p = std::malloc(bytes > 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept {
  return allocations_left == 0 ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* p, std::nothrow_t const&) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace {

TEST(states, are_loaded_wholly_or_not_at_all_where_memory_runs_out) {
  test::folder const in;
  memfit::host const exec{1};
  std::vector<float> w(300, 1.0f);
  using optimizer = memfit::optimizer<memfit::momentum, memfit::fp16>;
  auto const refs = std::vector{memfit::tensor_ref<float>(w.data(), 300, "w")};
  optimizer trained(exec, {.lr = 0.5}, refs, {.min_quantized = 1}), other(exec, {}, refs);
  memfit::loss_scaler scale(exec, {.initial = 3}), other_scale(exec);
  trained.step_one(0, std::vector<float>(300, 2.0f));
  memfit::save_state(in / "good", trained, scale);
  std::string const good = in / "good", saved = in / "saved", failing = in / "failing";
  memfit::save_state(saved, other, other_scale);
  auto const before = test::content(saved);

  int failures = 0;
  for (bool done = false; !done; ++failures) {
    ASSERT_LT(failures, 5000);
    try {
      allocations_left = failures;
      memfit::load_state(good, memfit::states(other, {.convert = true}), other_scale);
      done = true;
    } catch (std::bad_alloc const&) {
    }
    allocations_left = -1;
    if (done) break;
    if (failures % 16 == 0) memfit::save_state(saved, other, other_scale);
    ASSERT_TRUE(test::content(saved) == before) << failures;
  }
  EXPECT_GT(failures, 30);
  EXPECT_EQ(other.moment_sync(0, 0), trained.moment_sync(0, 0));
  EXPECT_EQ(other_scale.value_sync(), 3);

  auto const files = in.files();
  for (int left = 0; left < 1000; ++left) {
    bool done = false;
    try {
      allocations_left = left;
      memfit::save_state(failing, other, other_scale);
      done = true;
    } catch (std::bad_alloc const&) {
    }
    allocations_left = -1;
    if (done) break;
    ASSERT_EQ(in.files(), files) << left;
  }
  EXPECT_EQ(in.files(), files + 1);
}

}  // namespace
