// Threads that wait for work and share it by drawing task numbers.
// Used by host; one pool lives as long as the executors that share it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace memfit::detail {

/// `threads - 1` workers; the calling thread is the last one. Calls from several threads take
/// turns.
class thread_pool {
 public:
  using task_function = void (*)(void const* context, std::int64_t task);

  explicit thread_pool(int threads) {
    workers_.reserve(static_cast<std::size_t>(threads - 1));
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { serve(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~thread_pool() { stop(); }
  thread_pool(thread_pool const&) = delete;
  thread_pool& operator=(thread_pool const&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Runs task numbers 0 … tasks - 1, each once, and returns when all are done. Tasks do not throw.
  void run(std::int64_t tasks, void const* context, task_function task) {
    if (tasks <= 1 || workers_.empty()) {
      for (std::int64_t i = 0; i < tasks; ++i) task(context, i);
      return;
    }
    std::lock_guard const turn(turn_);
    {
      std::lock_guard const lock(mutex_);
      context_ = context;
      task_ = task;
      tasks_ = tasks;
      next_.store(0, std::memory_order_relaxed);
      busy_ = static_cast<int>(workers_.size());
      ++round_;
    }
    wake_.notify_all();
    draw();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void draw() {
    for (auto i = next_.fetch_add(1); i < tasks_; i = next_.fetch_add(1)) task_(context_, i);
  }

  void serve() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      lock.unlock();
      draw();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  void stop() {
    {
      std::lock_guard const lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  std::vector<std::thread> workers_;
  std::mutex turn_, mutex_;
  std::condition_variable wake_, done_;
  std::atomic<std::int64_t> next_{0};
  void const* context_ = nullptr;
  task_function task_ = nullptr;
  std::int64_t tasks_ = 0;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
};

}  // namespace memfit::detail
