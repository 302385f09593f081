// The host executor itself: threads that each take their share once, vector units of this machine,
// memory. What a step does on it is tested with the optimizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "memfit/exec/host.hpp"
#include "support/hosts.hpp"
#include "support/refusal.hpp"

namespace {

TEST(host, has_as_many_threads_as_asked_for) {
  EXPECT_EQ(memfit::host{1}.threads(), 1);
  EXPECT_EQ(memfit::host{5}.threads(), 5);
  EXPECT_GE(memfit::host{}.threads(), 1);
}

TEST(host, refuses_a_negative_number_of_threads) {
  for (int threads : {-1, -1000, std::numeric_limits<int>::min()})
    test::expect_refusal<memfit::argument_error>([&] { memfit::host{threads}; },
                                                 {"memfit::host", std::to_string(threads)});
}

TEST(host, always_has_the_scalar_units_and_takes_the_best_by_itself) {
  EXPECT_TRUE(memfit::host::supports(memfit::isa::scalar));
  EXPECT_TRUE(memfit::host::supports(memfit::isa::best));
  auto const chosen = memfit::host{1}.units();
  EXPECT_NE(chosen, memfit::isa::best);
  if (memfit::host::supports(memfit::isa::avx512)) {
    EXPECT_EQ(chosen, memfit::isa::avx512);
  }
}

TEST(host, refuses_units_that_the_machine_lacks) {
  for (auto units : {memfit::isa::avx2, memfit::isa::avx512}) {
    if (memfit::host::supports(units)) continue;
    test::expect_refusal<memfit::argument_error>(
        [&] {
          (memfit::host{1, units});
        },
        {"memfit::host"});
  }
}

TEST(host, runs_every_task_once) {
  for (auto const& host : test::all_hosts()) {
    for (std::int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(tasks));
      host.exec.for_each_task(tasks, [&](std::int64_t i) { ++times[static_cast<std::size_t>(i)]; });
      EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](auto& n) { return n == 1; }))
          << host.name << " " << tasks;
    }
  }
}

TEST(host, serves_callers_from_several_threads) {
  memfit::host const exec{3};
  std::vector<std::atomic<int>> times(64);
  auto const call = [&] {
    for (int round = 0; round < 200; ++round)
      exec.for_each_task(64, [&](std::int64_t i) { ++times[static_cast<std::size_t>(i)]; });
  };
  std::thread other(call);
  call();
  other.join();
  for (auto& n : times) EXPECT_EQ(n, 400);
}

TEST(host, copies_work_after_the_original_is_gone) {
  auto exec = std::make_unique<memfit::host>(3);
  memfit::host const copy = *exec;
  exec.reset();
  std::atomic<int> sum = 0;
  copy.for_each_task(10, [&](std::int64_t) { ++sum; });
  EXPECT_EQ(sum, 10);
}

TEST(host, allocates_aligned_memory_and_copies_it) {
  memfit::host const exec{1};
  auto memory = exec.allocate(100);
  EXPECT_EQ(memory.bytes(), 100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0u);
  std::vector<std::uint8_t> const sent{1, 2, 3};
  std::vector<std::uint8_t> received(4, 9);
  exec.fill(memory.data(), 0, 100);
  exec.copy_from_host(memory.data(), sent.data(), 3);
  exec.copy_to_host(received.data(), memory.data(), 4);
  EXPECT_EQ(received, (std::vector<std::uint8_t>{1, 2, 3, 0}));
  EXPECT_EQ(exec.allocate(0).bytes(), 0);
}

TEST(host, says_how_much_memory_it_could_not_have) {
  memfit::host const exec{1};
  constexpr std::int64_t much = std::int64_t{1} << 60;
  test::expect_refusal<memfit::memory_error>([&] { (void)exec.allocate(much); },
                                             {"memfit::host", std::to_string(much)});
  test::expect_refusal<memfit::memory_error>([&] { (void)exec.allocate(-1); }, {"-1"});
}

TEST(buffer, moves_and_frees_once) {
  static int freed;
  freed = 0;
  static std::uint8_t storage[4];
  {
    memfit::buffer first(
        storage, 4, [](void*, std::int64_t bytes) noexcept { freed += static_cast<int>(bytes); });
    memfit::buffer second(std::move(first));
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(second.data(), storage);
    memfit::buffer third;
    third = std::move(second);
    EXPECT_EQ(third.bytes(), 4);
    EXPECT_EQ(freed, 0);
    third = memfit::buffer{};
    EXPECT_EQ(freed, 4);
  }
  EXPECT_EQ(freed, 4);
}

}  // namespace
