// Many tensors stepped in one launch: the step list of the CUDA driver, and its kernels.
// Used by the CUDA driver; the optimizer holds one list per format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "memfit/exec/cuda/step.cuh"
#include "memfit/exec/cuda/table.cuh"

namespace memfit::detail {

/// Counts the step of every tensor that takes part, and computes its constants.
template <class Rule>
__global__ void begin_steps(table_row<step_item<Rule>>* rows, std::int64_t count,
                            step_call<Rule> call) {
  if (call.gate_at.skip != nullptr && *call.gate_at.skip != 0) return;
  Rule const rule = call.rule_at != nullptr ? *call.rule_at : call.rule;
  auto const stride = std::int64_t{gridDim.x} * blockDim.x;
  for (auto i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    // Called here and not in a function for both sides, so that an `at` for the host alone is
    // refused.
    if (auto const step = rows[i].item.next_step(); step != 0)
      rows[i].item.begin(rule.at(step), call.seed, step);
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

/// Gradients that have moved, as an argument.
template <class Rule>
struct carried_gradients {
  static constexpr int most = 160;
  struct one {
    std::int64_t row;
    void const* data;
    scalar_kind kind;
  };
  table_row<step_item<Rule>>* rows;
  std::int64_t count;
  one gradient[most];
};
template <class Rule>
__global__ void write_gradients(__grid_constant__ carried_gradients<Rule> const carried) {
  for (auto i = std::int64_t{threadIdx.x}; i < carried.count; i += blockDim.x) {
    auto const& g = carried.gradient[i];
    carried.rows[g.row].item.gradient = g.data;
    carried.rows[g.row].item.gradient_kind = g.kind;
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
  void add(step_item<Rule> const& item) override { table_.add(item, item.count); }
  void retire(std::int64_t index) override {
    table_[index] = {};
    table_.forget();
  }
  std::int64_t bytes() const override { return table_.bytes(); }
  void set_gradient(std::int64_t index, void const* data, scalar_kind kind) override {
    auto& item = table_[index];
    if (item.gradient == data && item.gradient_kind == kind) return;
    item.gradient = data;
    item.gradient_kind = kind;
    if (!table_.is_captured()) moved_.push_back(index);
  }

  void step(std::int64_t first, std::int64_t count, step_call<Rule> const& call) override {
    if (count == 0) return;
    send(first, count);
    launch(exec_, begin_steps<Rule>, grid_for(count, threads_per_block), table_.rows() + first,
           count, call);
    auto const part = table_.first_part(first);
    step_work<Rule> work{};
    work.rows = table_.rows();
    work.parts = table_.parts() + part;
    work.count = table_.first_part(first + count) - part;
    work.gate_at = call.gate_at;
    work.nonfinite = call.nonfinite;
    launch_steps<Rule, Format, Column>(exec_, work);
  }

 private:
  /// Sends what the device does not know, in the stream. A graph takes along all that its step
  /// needs, and from then on every step does: any replay may have come before it.
  void send(std::int64_t first, std::int64_t count) {
    bool const capturing = table_.begin();
    if (!table_.is_known()) {
      table_.send(capturing);
    } else if (table_.is_captured()) {
      send_gradients(count, [&](std::int64_t i) { return first + i; });
      return;
    } else {
      table_.forget();  // until all has gone well
      send_gradients(std::ssize(moved_),
                     [&](std::int64_t i) { return moved_[static_cast<std::size_t>(i)]; });
      table_.remember();
    }
    moved_.clear();
  }
  template <class Row>
  void send_gradients(std::int64_t count, Row const& row) {
    carried_gradients<Rule> carried;
    carried.rows = table_.rows();
    for (std::int64_t from = 0; from < count;) {
      for (carried.count = 0; carried.count < carried.most && from < count; ++from) {
        auto const& item = table_[row(from)];
        carried.gradient[carried.count++] = {row(from), item.gradient, item.gradient_kind};
      }
      launch(exec_, write_gradients<Rule>, 1u, carried);
    }
  }

  cuda exec_;
  device_table<step_item<Rule>, warp_step<Rule, Format, Column>::part> table_;
  std::vector<std::int64_t> moved_;  // rows whose gradient the device does not know yet
};

}  // namespace memfit::detail
