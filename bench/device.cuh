// Benchmarks on a CUDA device: memory checked beforehand, timings by events, the speed of a copy to
// compare with. Used by the CUDA benchmark programs.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "cases.hpp"
#include "memfit/exec/cuda.cuh"

namespace memfit::bench {

using memfit::detail::expect_success;

/// A stream on the current device, and two events to time what runs in it.
class clocked_stream {
 public:
  clocked_stream() {
    expect_success(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    expect_success(cudaEventCreate(&begin_), "cudaEventCreate");
    expect_success(cudaEventCreate(&end_), "cudaEventCreate");
  }
  clocked_stream(clocked_stream const&) = delete;
  clocked_stream& operator=(clocked_stream const&) = delete;
  ~clocked_stream() {
    cudaEventDestroy(end_);
    cudaEventDestroy(begin_);
    cudaStreamDestroy(stream_);
  }

  cuda exec() const { return cuda(stream_); }

  /// Seconds that the device takes for so many calls. Waits.
  template <class Call>
  double seconds(std::int64_t calls, Call& call) const {
    expect_success(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    for (std::int64_t i = 0; i < calls; ++i) call();
    expect_success(cudaEventRecord(end_, stream_), "cudaEventRecord");
    expect_success(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    expect_success(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

inline constexpr std::int64_t warm_up_calls = 3;
inline constexpr std::int64_t timed_calls = 20;  ///< between two events

/// A copy within the device that moves 16 bytes per element, as a step with 8-bit moments does: the
/// limit of whatever moves as many bytes.
class copying {
 public:
  static constexpr double bytes = 16;
  copying(cuda const& exec, std::int64_t n)
      : exec_(exec), from_(exec.allocate(8 * n)), to_(exec.allocate(8 * n)) {
    exec.fill(from_.data(), 0, from_.bytes());
  }
  void operator()() { exec_.copy(to_.data(), from_.data(), from_.bytes()); }

 private:
  cuda exec_;
  buffer from_, to_;
};

/// Bytes per second of a copy that moves so many; measured once.
inline double copy_speed(clocked_stream const& stream, double moved) {
  static std::map<std::int64_t, double> known;
  auto const n = static_cast<std::int64_t>(moved / copying::bytes);
  if (auto const found = known.find(n); found != known.end()) return found->second;
  copying copy(stream.exec(), n);
  stream.seconds(warm_up_calls, copy);
  double seconds = stream.seconds(timed_calls, copy);
  for (int i = 0; i < 4; ++i) seconds = std::min(seconds, stream.seconds(timed_calls, copy));
  return known[n] = static_cast<double>(timed_calls) * moved / seconds;
}

inline std::string gigabytes(double bytes) {
  return std::to_string(bytes * 1e-9) + " GB";
}

/// Whether a benchmark has failed for another reason than lack of memory.
inline bool& any_failed() {
  static bool failed = false;
  return failed;
}

/// Times calls of a `Work(exec, n)`, which moves Work::bytes per element.
template <class Work>
void time_calls(benchmark::State& state) {
  auto const n = state.range(0);
  double const moved = static_cast<double>(n) * Work::bytes;
  std::size_t free = 0, total = 0;
  expect_success(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (moved > static_cast<double>(free))
    return state.SkipWithError(("left out: wants " + gigabytes(moved) + " and " +
                                gigabytes(static_cast<double>(free)) + " are free")
                                   .c_str());
  clocked_stream const stream;
  double const limit = copy_speed(stream, moved);
  Work work(stream.exec(), n);
  stream.seconds(warm_up_calls, work);
  double seconds = 0;
  while (state.KeepRunningBatch(timed_calls)) {
    double const batch = stream.seconds(timed_calls, work);
    state.SetIterationTime(batch);
    seconds += batch;
  }
  count(state, n, Work::bytes);
  state.counters["of_copy"] = static_cast<double>(state.iterations()) * moved / seconds / limit;
}

template <class Work>
void report_calls(benchmark::State& state) {
  try {
    time_calls<Work>(state);
  } catch (error const& e) {
    any_failed() = true;
    state.SkipWithError(e.what());
  }
}

}  // namespace memfit::bench
