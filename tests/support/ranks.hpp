// Runs one function as every rank of a group of threads.
// Used by tests of what takes a communicator.
#pragma once

#include <exception>
#include <thread>
#include <vector>

#include "memfit/parallel/thread_group.hpp"

namespace test {

/// Calls work(rank's end) in a thread for each rank; what one of them throws, this throws.
template <class Work>
void as_ranks(int ranks, Work const& work) {
  memfit::thread_group const group(ranks);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      try {
        auto end = group.at(r);
        work(end);
      } catch (...) {
        thrown[static_cast<std::size_t>(r)] = std::current_exception();
      }
    });
  for (auto& t : threads) t.join();
  for (auto const& e : thrown)
    if (e) std::rethrow_exception(e);
}

}  // namespace test
