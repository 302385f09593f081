// Many tensors stepped in one launch: the step list of the CUDA driver, and its kernels.
// Used by the CUDA driver; the optimizer holds one list per format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "memfit/exec/cuda/dry_run.cuh"
#include "memfit/exec/cuda/step.cuh"
#include "memfit/exec/cuda/table.cuh"

namespace memfit::detail {

/// The rules of some groups of tensors, as an argument.
template <class Rule>
struct carried_rules {
  static constexpr std::int64_t most = sizeof(Rule) < 512 ? 1024 / sizeof(Rule) : 1;
  std::int64_t first, end;  // groups
  alignas(Rule) unsigned char bytes[most * sizeof(Rule)];

  MEMFIT_HD Rule const& operator[](std::int64_t group) const {
    return reinterpret_cast<Rule const*>(bytes)[group - first];
  }
};

/// Counts the step of every tensor in these groups that takes part, and computes its constants.
template <class Rule>
__global__ void begin_steps(table_row<step_item<Rule>>* rows, std::int64_t count,
                            __grid_constant__ carried_rules<Rule> const carried,
                            step_call<Rule> call) {
  if (call.gate_at.skip != nullptr && *call.gate_at.skip != 0) return;
  auto const stride = std::int64_t{gridDim.x} * blockDim.x;
  for (auto i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    auto& item = rows[i].item;
    auto const group = item.group;
    if (group < carried.first || group >= carried.end) continue;
    Rule const rule = call.rules_at != nullptr ? call.rules_at[group] : carried[group];
    // Called here and not in a function for both sides, so that an `at` for the host alone is
    // refused.
    if (auto const step = item.next_step(call.part); step != 0)
      item.begin(rule.at(step), call.seed, step, call.part);
  }
}

/// Steps parts first … first + count - 1 of the table, or those of a single tensor without one.
template <class Rule>
struct step_work {
  table_row<step_item<Rule>> const* rows;  // null: `single` is the only tensor
  table_part const* parts;
  std::int64_t count;
  gate gate_at;
  std::uint64_t* nonfinite;
  step_item<Rule> single;
};

template <class Rule, class Format, class Column>
__global__ void __launch_bounds__(threads_per_block)
    step_parts(__grid_constant__ step_work<Rule> const work) {
  auto const& g = work.gate_at;
  if (g.skip != nullptr && *g.skip != 0) return;
  float const multiplier = g.multiplier != nullptr ? *g.multiplier : 1.0f;
  constexpr std::int64_t size = warp_step<Rule, Format, Column>::part;
  auto const w = std::int64_t{blockIdx.x} * warps_per_block + threadIdx.x / warp::lanes;
  if (w >= work.count) return;
  auto const* item = &work.single;
  auto first = w * size;
  if (work.rows != nullptr) {
    auto const part = work.parts[w];
    item = &work.rows[part.row].item;
    first = part.number * size;
  }
  auto const end = first + size, count = item->active();
  if (count == 0) return;
  warp_step<Rule, Format, Column> step(*item, multiplier, g.limit);
  auto const left_alone = step(first, end < count ? end : count);
  if (work.nonfinite != nullptr && left_alone != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(work.nonfinite), 1ull * left_alone);
}

/// A warp for each part: the blocks that a grid can have are enough for 2^43 elements.
template <class Rule, class Format, class Column>
void launch_steps(cuda const& exec, step_work<Rule> const& work) {
  launch(exec, step_parts<Rule, Format, Column>,
         static_cast<unsigned>(block_count(work.count, warps_per_block)), work);
}

/// Steps a single tensor.
template <class Rule, class Format, class Column>
void launch_step(cuda const& exec, step_item<Rule> const& item, gate const& g) {
  constexpr auto part = warp_step<Rule, Format, Column>::part;
  step_work<Rule> work{};
  work.count = block_count(item.active(), part);
  work.gate_at = g;
  work.single = item;
  launch_steps<Rule, Format, Column>(exec, work);
}

/// Steps a single tensor by a layerwise rule, whose constants the device computes: as a table of
/// one row, in memory for this call.
template <layerwise_rule Rule, class Format, class Column>
void launch_step(cuda const& exec, step_item<Rule> const& item, gate const& g) {
  using row = table_row<step_item<Rule>>;
  constexpr auto part = warp_step<Rule, Format, Column>::part;
  auto const count = block_count(item.active(), part);
  if (count == 0) return;
  passing_memory const squares(exec, squares_bytes<part>(count)), place(exec, sizeof(row)),
      cut(exec, count * static_cast<std::int64_t>(sizeof(table_part)));
  auto* const rows = static_cast<row*>(place.data());
  auto* const parts = static_cast<table_part*>(cut.data());
  exec.once(place_row<Rule>{rows, item});
  launch(exec, write_parts<step_item<Rule>>, 1u, static_cast<row const*>(rows), std::int64_t{1},
         parts, count);
  launch_dry_run<Rule, Format, Column, part>(
      exec, {rows, 0, 1, parts, count, g, static_cast<layer_squares*>(squares.data())});
  step_work<Rule> work{};
  work.rows = rows;
  work.parts = parts;
  work.count = count;
  work.gate_at = g;
  launch_steps<Rule, Format, Column>(exec, work);
}

/// Tensors whose gradient has moved or whose group is another, as an argument.
template <class Rule>
struct carried_changes {
  static constexpr int most = 160;
  struct one {
    std::int64_t row;
    void const* gradient;
    scalar_kind kind;
    std::int32_t group;
  };
  table_row<step_item<Rule>>* rows;
  std::int64_t count;
  one change[most];
};
template <class Rule>
__global__ void write_changes(__grid_constant__ carried_changes<Rule> const carried) {
  for (auto i = std::int64_t{threadIdx.x}; i < carried.count; i += blockDim.x) {
    auto const& c = carried.change[i];
    auto& item = carried.rows[c.row].item;
    item.gradient = c.gradient;
    item.gradient_kind = c.kind;
    item.group = c.group;
  }
}

template <class Rule, class Format, class Column>
class cuda_list final : public step_list<Rule> {
  static_assert(std::is_trivially_copyable_v<Rule> &&
                    std::is_trivially_copyable_v<constants_of<Rule>>,
                "memfit::cuda: a rule and its constants are trivially copyable");

 public:
  explicit cuda_list(cuda exec) : exec_(exec), table_(exec) {}

  bool reaches(void const* data) const override { return is_reached(exec_, data); }
  void add(step_item<Rule> const& item) override {
    buffer more;
    if constexpr (layerwise_rule<Rule>) {
      auto const bytes =
          squares_bytes<part>(table_.first_part(table_.size()) + block_count(item.count, part));
      if (bytes > squares_.bytes()) more = exec_.allocate(bytes + bytes / 2);
    }
    table_.add(item, item.count);
    if (more.bytes() > 0) squares_.swap(more);
  }
  void retire(std::int64_t index) override {
    table_[index] = {};
    table_.forget();
  }
  std::int64_t bytes() const override { return table_.bytes() + squares_.bytes(); }
  void set_gradient(std::int64_t index, void const* data, scalar_kind kind) override {
    auto& item = table_[index];
    if (item.gradient == data && item.gradient_kind == kind) return;
    item.gradient = data;
    item.gradient_kind = kind;
    changed(index);
  }
  void set_group(std::int64_t index, std::int32_t group) override {
    if (table_[index].group == group) return;
    table_[index].group = group;
    changed(index);
  }

  void step(std::int64_t first, std::int64_t count, step_call<Rule> const& call) override {
    if (count == 0) return;
    send(first, count);
    begin(first, count, call);
    auto const from = table_.first_part(first);
    step_work<Rule> work{};
    work.rows = table_.rows();
    work.parts = table_.parts() + from;
    work.count = table_.first_part(first + count) - from;
    work.gate_at = call.gate_at;
    work.nonfinite = call.nonfinite;
    if constexpr (layerwise_rule<Rule>)
      launch_dry_run<Rule, Format, Column, part>(
          exec_, {table_.rows(), first, count, work.parts, work.count, work.gate_at,
                  static_cast<layer_squares*>(squares_.data())});
    launch_steps<Rule, Format, Column>(exec_, work);
  }

 private:
  void changed(std::int64_t index) {
    if (!table_.is_captured()) changed_.push_back(index);
  }

  /// One launch for as many groups as an argument carries, or for all where their rules lie on the
  /// device.
  void begin(std::int64_t first, std::int64_t count, step_call<Rule> const& call) {
    using carried_rules = detail::carried_rules<Rule>;
    bool const there = call.rules_at != nullptr;
    auto const at_once = there ? call.groups : carried_rules::most;
    for (std::int64_t group = 0; group < call.groups; group += at_once) {
      auto const rest = call.groups - group, now = rest < at_once ? rest : at_once;
      carried_rules carried{group, group + now, {}};
      if (!there)
        std::memcpy(carried.bytes, call.rules + group,
                    static_cast<std::size_t>(now) * sizeof(Rule));
      launch(exec_, begin_steps<Rule>, grid_for(count, threads_per_block), table_.rows() + first,
             count, carried, call);
    }
  }

  /// Sends what the device does not know, in the stream. A graph takes along all that its step
  /// needs, and from then on every step does: any replay may have come before it.
  void send(std::int64_t first, std::int64_t count) {
    bool const capturing = table_.begin();
    if (!table_.is_known()) {
      table_.send(capturing);
    } else if (table_.is_captured()) {
      send_changes(count, [&](std::int64_t i) { return first + i; });
      return;
    } else {
      table_.forget();  // until all has gone well
      send_changes(std::ssize(changed_),
                   [&](std::int64_t i) { return changed_[static_cast<std::size_t>(i)]; });
      table_.remember();
    }
    changed_.clear();
  }
  template <class Row>
  void send_changes(std::int64_t count, Row const& row) {
    carried_changes<Rule> carried;
    carried.rows = table_.rows();
    for (std::int64_t from = 0; from < count;) {
      for (carried.count = 0; carried.count < carried.most && from < count; ++from) {
        auto const& item = table_[row(from)];
        carried.change[carried.count++] = {row(from), item.gradient, item.gradient_kind,
                                           item.group};
      }
      launch(exec_, write_changes<Rule>, 1u, carried);
    }
  }

  cuda exec_;
  static constexpr auto part = warp_step<Rule, Format, Column>::part;
  device_table<step_item<Rule>, part> table_;
  buffer squares_;                     // of a layerwise rule's parts
  std::vector<std::int64_t> changed_;  // rows of which the device does not know all yet
};

}  // namespace memfit::detail
