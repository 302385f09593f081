// The host executor: threads and vector units of this machine, memory of this process.
// Used as the first argument of every memfit function that works on host tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memfit/core/error.hpp"
#include "memfit/core/memory.hpp"
#include "memfit/exec/host/dry_run.hpp"
#include "memfit/exec/host/isa.hpp"
#include "memfit/exec/host/norm.hpp"
#include "memfit/exec/host/pool.hpp"
#include "memfit/exec/host/step.hpp"
#include "memfit/exec/host/sum.hpp"
#include "memfit/exec/host/transform.hpp"
#include "memfit/exec/list.hpp"

namespace memfit {

/// Runs on the CPU and returns when the work is done. Results do not depend on the number of
/// threads or on the vector units. Copies share their threads; calls from several threads take
/// turns.
class host {
 public:
  /// `threads` = 0 takes one per processor. Throws argument_error for a negative number and for
  /// units that the machine lacks.
  explicit host(int threads = 0, isa units = isa::best) {
    if (threads < 0) throw argument_error("memfit::host: " + std::to_string(threads) + " threads");
    if (!supports(units))
      throw argument_error("memfit::host: this machine lacks these vector units");
    units_ = units == isa::best ? detail::widest_isa() : units;
    if (threads == 0)
      threads = (std::max)(1, static_cast<int>(std::thread::hardware_concurrency()));
    try {
      pool_ = std::make_shared<detail::thread_pool>(threads);
    } catch (std::exception const& e) {
      throw memory_error("memfit::host: cannot start " + std::to_string(threads) +
                         " threads: " + e.what());
    }
  }

  static bool supports(isa units) { return detail::machine_has(units); }
  int threads() const { return pool_->threads(); }
  isa units() const { return units_; }

  /// Uninitialized memory, aligned to a cache line. Throws memory_error.
  buffer allocate(std::int64_t bytes) const {
    if (bytes == 0) return {};
    void* const p = bytes < 0 ? nullptr
                              : ::operator new (static_cast<std::size_t>(bytes),
                                                std::align_val_t{alignment}, std::nothrow);
    if (p == nullptr)
      throw memory_error("memfit::host: cannot allocate " + std::to_string(bytes) + " bytes");
    return {p, bytes, [](void* data, std::int64_t) noexcept {
              ::operator delete (data, std::align_val_t{alignment});
            }};
  }
  void copy(void* to, void const* from, std::int64_t bytes) const {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void copy_from_host(void* to, void const* from, std::int64_t bytes) const {
    copy(to, from, bytes);
  }
  void copy_to_host(void* to, void const* from, std::int64_t bytes) const { copy(to, from, bytes); }
  void fill(void* to, unsigned char value, std::int64_t bytes) const {
    if (bytes > 0) std::memset(to, value, static_cast<std::size_t>(bytes));
  }

  /// Calls work(task) for task = 0 … tasks - 1 on all threads; work does not throw.
  template <class Work>
  void for_each_task(std::int64_t tasks, Work const& work) const {
    pool_->run(tasks, &work, [](void const* context, std::int64_t task) {
      (*static_cast<Work const*>(context))(task);
    });
  }

  /// Runs a body with the lanes of this executor's vector units.
  template <class Body>
  void run(Body const& body) const {
    detail::run_on(units_, body);
  }

  /// Calls a program that reads and writes a few numbers.
  template <class Program>
  void once(Program const& program) const {
    program();
  }

  /// One fused pass over all columns of one tensor.
  template <class Rule, class Format, class Column>
  void step(step_item<Rule> const& item, gate g) const {
    if (g.skip != nullptr && *g.skip != 0) return;
    if constexpr (layerwise_rule<Rule>) {
      auto measured = item;
      measure_all<Rule, Format, Column>(&measured, 1, g, detail::layer_parts(&item, 1));
      step_all<Rule, Format, Column>(&measured, 1, g, nullptr);
    } else {
      step_all<Rule, Format, Column>(&item, 1, g, nullptr);
    }
  }

  /// An empty list of tensors to be stepped together.
  template <class Rule, class Format, class Column>
  owner<step_list<Rule>> steps() const {
    return owner<step_list<Rule>>(new list<Rule, Format, Column>(*this));
  }

  /// Adds one tensor to sums in Column.
  template <class Column>
  void sum(sum_item const& item, sum_call const& call) const {
    sum_all<Column>(&item, 1, call);
  }

  /// An empty list of sums in Column.
  template <class Column>
  owner<sum_list> sums() const {
    return owner<sum_list>(new sums_of<Column>(*this));
  }

  /// An empty list of tensors whose squares are summed together.
  owner<norm_list> norms() const;

  /// Codes n elements; see quantize.hpp.
  template <class Storage>
  void quantize(void const* in, scalar_kind kind, std::int64_t n, void* codes, void* scales) const {
    for_each_run(block_count(n, Storage::block), [=, this](std::int64_t first, std::int64_t last) {
      run(detail::quantize_body<Storage>{in, kind, n, first, last, codes, scales});
    });
  }

  /// Decodes n elements; see quantize.hpp.
  template <class Storage>
  void dequantize(void const* codes, void const* scales, std::int64_t n, void* out,
                  scalar_kind kind) const {
    for_each_run(block_count(n, Storage::block), [=, this](std::int64_t first, std::int64_t last) {
      run(detail::dequantize_body<Storage>{static_cast<typename Storage::code const*>(codes),
                                           scales, n, first, last, out, kind});
    });
  }

 private:
  template <class Rule, class Format, class Column>
  class list;
  template <class Column>
  class sums_of;
  class squares;

  template <class Rule, class Format, class Column>
  void step_all(step_item<Rule> const* items, std::int64_t count, gate g,
                std::uint64_t* nonfinite) const {
    float const multiplier = g.multiplier != nullptr ? *g.multiplier : 1.0f;
    for_each_part(items, count, detail::task_size<Rule, Format>,
                  [&](step_item<Rule> const& item, std::int64_t first, std::int64_t last) {
                    run(detail::step_body<Rule, Format, Column>{item, first, last, multiplier,
                                                                g.limit, nonfinite});
                  });
  }

  /// Gives the constants of every tensor its norms.
  template <class Rule, class Format, class Column>
  void measure_all(step_item<Rule>* items, std::int64_t count, gate g,
                   detail::layer_parts parts) const {
    float const multiplier = g.multiplier != nullptr ? *g.multiplier : 1.0f;
    for_each_part(items, count, detail::sum_task,
                  [&](step_item<Rule> const& item, std::int64_t first, std::int64_t last) {
                    run(detail::dry_run_body<Rule, Format, Column>{
                        item, first, last, multiplier, g.limit, parts.of(&item - items)});
                  });
    for (std::int64_t i = 0; i < count; ++i)
      if (auto const n = detail::sum_parts(items[i].active()); n != 0)
        items[i].constants = items[i].constants.with(detail::norms_of(parts.of(i), n));
  }

  template <class Column>
  void sum_all(sum_item const* items, std::int64_t count, sum_call const& call) const {
    for_each_part(items, count, detail::sum_task,
                  [&](sum_item const& item, std::int64_t first, std::int64_t last) {
                    run(detail::sum_body<Column>{item, call, first, last});
                  });
  }

  /// Calls work(item, first, last) for parts of `size` elements of all items.
  template <class Item, class Work>
  void for_each_part(Item const* items, std::int64_t count, std::int64_t size,
                     Work const& work) const {
    std::vector<std::int64_t> first_task{0};
    for (std::int64_t i = 0; i < count; ++i)
      first_task.push_back(first_task.back() + memfit::block_count(items[i].active(), size));
    for_each_task(first_task.back(), [&](std::int64_t task) {
      auto const next = std::upper_bound(first_task.begin(), first_task.end(), task);
      auto const index = (next - first_task.begin()) - 1;
      auto const first = (task - first_task[static_cast<std::size_t>(index)]) * size;
      work(items[index], first, (std::min)(first + size, items[index].count));
    });
  }

  /// Calls work(first, last) for runs of blocks that make up 0 … blocks.
  template <class Work>
  void for_each_run(std::int64_t blocks, Work const& work) const {
    constexpr std::int64_t run_length = 512;
    for_each_task(memfit::block_count(blocks, run_length), [&](std::int64_t task) {
      auto const first = task * run_length;
      work(first, (std::min)(first + run_length, blocks));
    });
  }

  static constexpr std::size_t alignment = 64;
  isa units_ = isa::scalar;
  std::shared_ptr<detail::thread_pool> pool_;
};

template <class Rule, class Format, class Column>
class host::list final : public step_list<Rule> {
 public:
  explicit list(host exec) : exec_(std::move(exec)) {}
  bool reaches(void const*) const override { return true; }
  void add(step_item<Rule> const& item) override { items_.push_back(item); }
  std::int64_t bytes() const override { return 0; }
  void retire(std::int64_t index) override { items_[static_cast<std::size_t>(index)] = {}; }
  void set_gradient(std::int64_t index, void const* data, scalar_kind kind) override {
    items_[static_cast<std::size_t>(index)].gradient = data;
    items_[static_cast<std::size_t>(index)].gradient_kind = kind;
  }
  void set_group(std::int64_t index, std::int32_t group) override {
    items_[static_cast<std::size_t>(index)].group = group;
  }
  void step(std::int64_t first, std::int64_t count, step_call<Rule> const& call) override {
    auto const g = call.gate_at;
    if (g.skip != nullptr && *g.skip != 0) return;
    Rule const* const rule = call.rules_at != nullptr ? call.rules_at : call.rules;
    auto const items =
        std::span(items_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    auto const begin = [&] {
      for (auto& item : items)
        if (auto const step = item.next_step(call.part); step != 0)
          item.begin(rule[item.group].at(step), call.seed, step, call.part);
    };
    if constexpr (layerwise_rule<Rule>) {
      detail::layer_parts parts(items.data(), count);
      begin();
      exec_.template measure_all<Rule, Format, Column>(items.data(), count, g, std::move(parts));
    } else {
      begin();
    }
    exec_.template step_all<Rule, Format, Column>(items.data(), count, g, call.nonfinite);
  }

 private:
  host exec_;
  std::vector<step_item<Rule>> items_;
};

template <class Column>
class host::sums_of final : public sum_list {
 public:
  explicit sums_of(host exec) : exec_(std::move(exec)) {}
  bool reaches(void const*) const override { return true; }
  void add(sum_item const& item) override { items_.push_back(item); }
  void set(std::int64_t index, void* source, scalar_kind kind) override {
    auto& item = items_[static_cast<std::size_t>(index)];
    item.source = source;
    item.source_kind = kind;
  }
  void run(sum_call const& call) override {
    exec_.template sum_all<Column>(items_.data(), std::ssize(items_), call);
  }

 private:
  host exec_;
  std::vector<sum_item> items_;
};

class host::squares final : public norm_list {
 public:
  explicit squares(host exec) : exec_(std::move(exec)) {}
  void add(std::int64_t count) override { tensors_.push_back({nullptr, scalar_kind::fp32, count}); }
  void set(std::int64_t index, void const* data, scalar_kind kind) override {
    auto& t = tensors_[static_cast<std::size_t>(index)];
    t.data = data;
    t.kind = kind;
  }
  double const* compute() override {
    std::vector<part> parts;
    for (auto const& t : tensors_)
      for (std::int64_t i = 0; i < t.count; i += detail::sum_part) parts.push_back({&t, i});
    std::vector<double> values(parts.size());
    constexpr std::int64_t run_length = 64;
    auto const all = static_cast<std::int64_t>(parts.size());
    exec_.for_each_task(memfit::block_count(all, run_length), [&](std::int64_t task) {
      for (auto i = task * run_length; i < (std::min)(all, (task + 1) * run_length); ++i) {
        auto const& p = parts[static_cast<std::size_t>(i)];
        exec_.run(detail::square_sum{p.of->data, p.of->kind, p.first,
                                     (std::min)(p.of->count, p.first + detail::sum_part),
                                     values[static_cast<std::size_t>(i)]});
      }
    });
    norm_ = std::sqrt(detail::sum_of(values));
    return &norm_;
  }
  double value_sync() const override { return norm_; }

 private:
  struct entry {
    void const* data;
    scalar_kind kind;
    std::int64_t count;
  };
  struct part {
    entry const* of;
    std::int64_t first;
  };
  host exec_;
  std::vector<entry> tensors_;
  double norm_ = 0;
};

inline owner<norm_list> host::norms() const {
  return owner<norm_list>(new squares(*this));
}

static_assert(executor<host>);

}  // namespace memfit
