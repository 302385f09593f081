// Many tensors in one launch: the table of a step list in device memory, and the step's kernels.
// Used by the CUDA driver; the optimizer holds one list per format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "memfit/exec/cuda/call.cuh"
#include "memfit/exec/cuda/step.cuh"

namespace memfit::detail {

/// A tensor in the table, and the number of its first part among the parts of all tensors.
template <class Rule>
struct table_row {
  step_item<Rule> item;
  std::int64_t first_part = 0;
};

/// A stretch of one tensor, the work of one warp.
struct table_part {
  std::uint32_t row;
  std::uint32_t number;  // among the parts of its tensor
};

/// Elements of a part.
template <int Block>
inline constexpr std::int64_t part_size = unit_of<Block> > 4 * tile ? unit_of<Block> : 4 * tile;

/// Counts the step of every tensor that takes part, and computes its constants.
template <class Rule>
__global__ void begin_steps(table_row<Rule>* rows, std::int64_t count, step_call<Rule> call) {
  if (call.gate_at.skip != nullptr && *call.gate_at.skip != 0) return;
  Rule const rule = call.rule_at != nullptr ? *call.rule_at : call.rule;
  auto const stride = std::int64_t{gridDim.x} * blockDim.x;
  for (auto i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    rows[i].item.begin(rule, call.seed);
}

/// Steps parts first … first + count - 1 of the table, or those of a single tensor without one.
template <class Rule>
struct step_work {
  table_row<Rule> const* rows;  // null: `single` is the only tensor
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
  constexpr auto size = part_size<format_traits<Format, range::any>::block>;
  auto const stride = std::int64_t{gridDim.x} * warps_per_block;
  auto w = std::int64_t{blockIdx.x} * warps_per_block + threadIdx.x / warp::lanes;
  unsigned left_alone = 0;
  for (; w < work.count; w += stride) {
    auto const* item = &work.single;
    auto first = w * size;
    if (work.rows != nullptr) {
      auto const part = work.parts[w];
      item = &work.rows[part.row].item;
      first = part.number * size;
    }
    auto const end = first + size, count = item->active();
    warp_step<Rule, Format, Column> step(*item, multiplier);
    left_alone += step(first, end < count ? end : count);
  }
  if (work.nonfinite != nullptr && left_alone != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(work.nonfinite), 1ull * left_alone);
}

/// Writes the `total` parts of all tensors.
template <class Rule>
__global__ void write_parts(table_row<Rule> const* rows, std::int64_t count, table_part* parts,
                            std::int64_t total) {
  for (auto i = std::int64_t{blockIdx.x}; i < count; i += gridDim.x) {
    auto const first = rows[i].first_part;
    auto const own = (i + 1 < count ? rows[i + 1].first_part : total) - first;
    for (std::int64_t j = threadIdx.x; j < own; j += blockDim.x)
      parts[first + j] = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j)};
  }
}

/// Bytes that travel as an argument: no host memory to keep, in a captured graph neither.
struct carried_words {
  static constexpr int most = 960;
  std::uint32_t* to;
  std::int64_t count;
  std::uint32_t word[most];
};
template <class = void>
__global__ void write_words(__grid_constant__ carried_words const words) {
  for (auto i = std::int64_t{threadIdx.x}; i < words.count; i += blockDim.x)
    words.to[i] = words.word[i];
}

template <class Rule>
struct carried_gradients {
  static constexpr int most = 160;
  struct one {
    std::int64_t row;
    void const* data;
    scalar_kind kind;
  };
  table_row<Rule>* rows;
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
 public:
  explicit cuda_list(cuda exec) : exec_(exec) {}

  void add(step_item<Rule> const& item) override {
    auto const parts = parts_ + block_count(item.count, size);
    rows_.reserve(rows_.size() + 1);
    changed_.reserve(rows_.size() + 1);
    make_room(std::ssize(rows_) + 1, parts);
    rows_.push_back({item, parts_});
    parts_ = parts;
    rows_written_ = false;
  }
  void retire(std::int64_t index) override {
    at(index).item = {};
    rows_written_ = false;
  }
  void set_gradient(std::int64_t index, void const* data, scalar_kind kind) override {
    auto& item = at(index).item;
    if (item.gradient == data && item.gradient_kind == kind) return;
    item.gradient = data;
    item.gradient_kind = kind;
    changed_.push_back(index);
  }

  void step(std::int64_t first, std::int64_t count, step_call<Rule> const& call) override {
    if (count == 0) return;
    if (rows_written_)
      send_gradients();
    else
      send_rows();
    launch(exec_, begin_steps<Rule>, grid_for(count, threads_per_block), rows() + first, count,
           call);
    auto const begin = at(first).first_part;
    auto const end = first + count < std::ssize(rows_) ? at(first + count).first_part : parts_;
    step_work<Rule> work{};
    work.rows = rows();
    work.parts = static_cast<table_part const*>(part_memory_.data()) + begin;
    work.count = end - begin;
    work.gate_at = call.gate_at;
    work.nonfinite = call.nonfinite;
    launch(exec_, step_parts<Rule, Format, Column>, grid_for(work.count, warps_per_block), work);
  }

 private:
  using row = table_row<Rule>;
  static constexpr auto size = part_size<format_traits<Format, range::any>::block>;
  static_assert(sizeof(row) % sizeof(std::uint32_t) == 0);

  row& at(std::int64_t index) { return rows_[static_cast<std::size_t>(index)]; }
  row* rows() const { return static_cast<row*>(row_memory_.data()); }

  /// Room for the table of so many rows and parts; grows by half.
  void make_room(std::int64_t rows, std::int64_t parts) {
    auto const row_bytes = rows * static_cast<std::int64_t>(sizeof(row));
    auto const part_bytes = parts * static_cast<std::int64_t>(sizeof(table_part));
    buffer more_rows, more_parts;
    if (row_bytes > row_memory_.bytes()) more_rows = exec_.allocate(row_bytes + row_bytes / 2);
    if (part_bytes > part_memory_.bytes()) more_parts = exec_.allocate(part_bytes + part_bytes / 2);
    if (more_rows.bytes() > 0) row_memory_.swap(more_rows);
    if (more_parts.bytes() > 0) part_memory_.swap(more_parts);
  }

  void send_rows() {
    auto const bytes = rows_.size() * sizeof(row);
    carried_words words;
    for (std::size_t from = 0; from < bytes; from += sizeof words.word) {
      auto const n = bytes - from < sizeof words.word ? bytes - from : sizeof words.word;
      std::memcpy(words.word, reinterpret_cast<char const*>(rows_.data()) + from, n);
      words.to = static_cast<std::uint32_t*>(row_memory_.data()) + from / sizeof *words.to;
      words.count = static_cast<std::int64_t>(n / sizeof *words.to);
      launch(exec_, write_words<>, 1u, words);
    }
    launch(exec_, write_parts<Rule>, grid_for(std::ssize(rows_), 1),
           static_cast<row const*>(rows()), std::int64_t{std::ssize(rows_)},
           static_cast<table_part*>(part_memory_.data()), parts_);
    changed_.clear();
    rows_written_ = true;
  }

  void send_gradients() {
    rows_written_ = false;  // until all of it has gone well
    carried_gradients<Rule> carried;
    carried.rows = rows();
    for (std::size_t from = 0; from < changed_.size();) {
      for (carried.count = 0; carried.count < carried.most && from < changed_.size(); ++from) {
        auto const index = changed_[from];
        carried.gradient[carried.count++] = {index, at(index).item.gradient,
                                             at(index).item.gradient_kind};
      }
      launch(exec_, write_gradients<Rule>, 1u, carried);
    }
    changed_.clear();
    rows_written_ = true;
  }

  cuda exec_;
  std::vector<row> rows_;
  std::int64_t parts_ = 0;
  std::vector<std::int64_t> changed_;  // rows whose gradient the device does not know yet
  bool rows_written_ = false;
  buffer row_memory_, part_memory_;
};

}  // namespace memfit::detail
