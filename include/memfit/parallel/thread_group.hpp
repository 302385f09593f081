// Ranks that are threads of one process, with their data in its memory.
// Used to train on several host executors at once, and by tests of whatever takes a communicator.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "memfit/core/error.hpp"
#include "memfit/parallel/communicator.hpp"

namespace memfit {

namespace detail {

/// Where the threads of a group meet.
class meeting {
 public:
  struct offer {
    void* data = nullptr;
    std::int64_t count = 0;
    std::size_t size = 0;  // of an element
  };

  explicit meeting(int ranks) : offers_(static_cast<std::size_t>(ranks)) {}
  int size() const { return static_cast<int>(offers_.size()); }

  /// Shows an offer, waits for those of all ranks, calls work(offers), and waits until all have
  /// done so.
  template <class Work>
  void meet(int rank, offer const& own, Work const& work) {
    offers_[static_cast<std::size_t>(rank)] = own;
    wait();
    work(static_cast<std::vector<offer> const&>(offers_));
    wait();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (++arrived_ == offers_.size()) {
      arrived_ = 0;
      ++round_;
      all_.notify_all();
      return;
    }
    all_.wait(lock, [this, round = round_] { return round_ != round; });
  }

  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<offer> offers_;
  std::size_t arrived_ = 0;
  std::uint64_t round_ = 0;
};

/// Replaces elements first … last of every offer by their sum over the ranks, in rank order.
template <class T>
void sum_over_ranks(std::vector<meeting::offer> const& offers, std::int64_t first,
                    std::int64_t last) {
  using wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr std::int64_t most = 512;
  double totals[most];
  for (; first < last; first += most) {
    auto const n = last - first < most ? last - first : most;
    for (std::int64_t i = 0; i < n; ++i) totals[i] = 0;
    for (auto const& o : offers)
      for (std::int64_t i = 0; i < n; ++i)
        totals[i] +=
            static_cast<double>(static_cast<wide>(static_cast<T const*>(o.data)[first + i]));
    for (auto const& o : offers)
      for (std::int64_t i = 0; i < n; ++i)
        static_cast<T*>(o.data)[first + i] = T(static_cast<wide>(totals[i]));
  }
}

}  // namespace detail

/// One thread's end of a group; see communicator. Every call waits for all ranks, so that a rank
/// that stops calling stops them all.
class thread_rank {
 public:
  int rank() const { return rank_; }
  int size() const { return meeting_->size(); }

  /// float, double or bf16; sums are those of doubles in the order of the ranks, rounded once.
  /// Throws argument_error on all ranks, with nothing changed, where counts or types differ.
  template <class T>
  void all_reduce_sum(T* data, std::int64_t count) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, bf16>,
                  "memfit::thread_rank: elements are float, double or memfit::bf16");
    detail::meeting::offer const own{data, count, sizeof(T)}, *other = nullptr;
    meeting_->meet(rank_, own, [&](auto const& offers) {
      for (auto const& o : offers)
        if (o.count != offers[0].count || o.size != offers[0].size) other = &o;
      if (other == nullptr)
        detail::sum_over_ranks<T>(offers, count * rank_ / size(), count * (rank_ + 1) / size());
    });
    if (other != nullptr)
      throw argument_error("memfit::thread_rank::all_reduce_sum: rank " + std::to_string(rank_) +
                           " of " + std::to_string(size()) + " has " + std::to_string(count) +
                           " elements of " + std::to_string(sizeof(T)) +
                           " bytes, and not all ranks do");
  }

 private:
  friend class thread_group;
  thread_rank(std::shared_ptr<detail::meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  std::shared_ptr<detail::meeting> meeting_;
  int rank_;
};

/// A group of threads; each thread works with the end of its own rank.
class thread_group {
 public:
  /// Throws argument_error for less than one rank.
  explicit thread_group(int ranks) {
    if (ranks < 1)
      throw argument_error("memfit::thread_group: " + std::to_string(ranks) + " ranks");
    meeting_ = std::make_shared<detail::meeting>(ranks);
  }
  int size() const { return meeting_->size(); }
  /// Throws argument_error for a rank that is none.
  thread_rank at(int rank) const {
    if (rank < 0 || rank >= size())
      throw argument_error("memfit::thread_group: rank " + std::to_string(rank) + " of " +
                           std::to_string(size()));
    return {meeting_, rank};
  }

 private:
  std::shared_ptr<detail::meeting> meeting_;
};

static_assert(communicator<thread_rank>);

}  // namespace memfit
