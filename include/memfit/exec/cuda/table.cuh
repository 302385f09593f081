// A table of tensors in device memory, and the parts into which kernels cut their work.
// Used by the CUDA driver's lists, so that any number of tensors is one launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "memfit/exec/cuda/call.cuh"
#include "memfit/exec/cuda/tile.cuh"

namespace memfit::detail {

/// A tensor in the table, and the number of its first part among the parts of all tensors.
template <class Item>
struct table_row {
  Item item;
  std::int64_t first_part = 0;
};

/// A stretch of one tensor, the work of one warp.
struct table_part {
  std::uint32_t row;
  std::uint32_t number;  // among the parts of its tensor
};

/// Writes the `total` parts of all tensors.
template <class Item>
__global__ void write_parts(table_row<Item> const* rows, std::int64_t count, table_part* parts,
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

/// The rows on the host and on the device. What throws has changed nothing.
template <class Item, std::int64_t PartSize>
class device_table {
 public:
  using row = table_row<Item>;
  explicit device_table(cuda exec) : exec_(exec) {}

  /// Allocates what the row needs; not while the stream is captured.
  void add(Item const& item, std::int64_t count) {
    auto const parts = parts_ + block_count(count, PartSize);
    room_for_one_more(rows_);
    make_room(std::ssize(rows_) + 1, parts);
    rows_.push_back({item, parts_});
    parts_ = parts;
    known_ = false;
  }
  std::int64_t size() const { return std::ssize(rows_); }
  Item& operator[](std::int64_t index) { return rows_[static_cast<std::size_t>(index)].item; }
  /// Number of the first part of row `index`; of all parts for the row after the last.
  std::int64_t first_part(std::int64_t index) const {
    return index < size() ? rows_[static_cast<std::size_t>(index)].first_part : parts_;
  }

  row* rows() const { return static_cast<row*>(row_memory_.data()); }
  table_part const* parts() const { return static_cast<table_part const*>(part_memory_.data()); }

  /// Whether the device has every row, but for what the list itself keeps track of.
  bool is_known() const { return known_; }
  void forget() { known_ = false; }
  void remember() { known_ = true; }
  /// Whether a graph holds writes to the table: a replay may bring back what they wrote.
  bool is_captured() const { return captured_; }
  /// Says that work on the table goes into the stream now; returns whether that only captures it.
  bool begin() {
    bool const capturing = is_capturing(exec_);
    captured_ |= capturing;
    return capturing;
  }
  std::int64_t bytes() const { return row_memory_.bytes() + part_memory_.bytes(); }

  /// Sends all rows, in the stream.
  void send(bool capturing) {
    auto const bytes = rows_.size() * sizeof(row);
    carried_words words;
    for (std::size_t from = 0; from < bytes; from += sizeof words.word) {
      auto const n = bytes - from < sizeof words.word ? bytes - from : sizeof words.word;
      std::memcpy(words.word, reinterpret_cast<char const*>(rows_.data()) + from, n);
      words.to = static_cast<std::uint32_t*>(row_memory_.data()) + from / sizeof *words.to;
      words.count = static_cast<std::int64_t>(n / sizeof *words.to);
      launch(exec_, write_words<>, 1u, words);
    }
    launch(exec_, write_parts<Item>, grid_for(size(), 1), static_cast<row const*>(rows()), size(),
           static_cast<table_part*>(part_memory_.data()), parts_);
    known_ = !capturing;
  }

 private:
  static_assert(sizeof(row) % sizeof(std::uint32_t) == 0);

  /// Room for so many rows and parts; grows by half.
  void make_room(std::int64_t rows, std::int64_t parts) {
    auto const row_bytes = rows * static_cast<std::int64_t>(sizeof(row));
    auto const part_bytes = parts * static_cast<std::int64_t>(sizeof(table_part));
    buffer more_rows, more_parts;
    if (row_bytes > row_memory_.bytes()) more_rows = exec_.allocate(row_bytes + row_bytes / 2);
    if (part_bytes > part_memory_.bytes()) more_parts = exec_.allocate(part_bytes + part_bytes / 2);
    if (more_rows.bytes() > 0) row_memory_.swap(more_rows);
    if (more_parts.bytes() > 0) part_memory_.swap(more_parts);
  }

  cuda exec_;
  std::vector<row> rows_;
  std::int64_t parts_ = 0;
  bool known_ = false;
  bool captured_ = false;
  buffer row_memory_, part_memory_;
};

}  // namespace memfit::detail
