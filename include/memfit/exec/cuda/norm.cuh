// The global norm on the device.
// Used by the CUDA driver, in the order of exec/sum.hpp.
#pragma once

#include <cstdint>
#include <utility>

#include "memfit/exec/cuda/table.cuh"
#include "memfit/exec/sum.hpp"

namespace memfit::detail {

/// A tensor whose squares are summed.
struct norm_item {
  void const* data = nullptr;
  scalar_kind kind = scalar_kind::fp32;
  std::int64_t count = 0;
};

/// Joins the sums of a part, four neighbouring ones in each thread.
__device__ inline double join(double (&sum)[wide]) {
  static_assert(sums == warp::lanes * wide);
  for (int reach = warp::lanes / 2; reach > 0; reach /= 2)
    for (auto& s : sum) s += __shfl_down_sync(warp::everyone, s, static_cast<unsigned>(reach));
  for (int reach = wide / 2; reach > 0; reach /= 2)
    for (int i = 0; i < reach; ++i) sum[i] += sum[i + reach];
  return sum[0];
}

/// One warp sums the squares of one part of a tensor.
template <class = void>
__global__ void sum_squares(table_row<norm_item> const* rows, table_part const* parts,
                            std::int64_t count, double* out) {
  auto const stride = std::int64_t{gridDim.x} * warps_per_block;
  auto w = std::int64_t{blockIdx.x} * warps_per_block + threadIdx.x / warp::lanes;
  for (; w < count; w += stride) {
    auto const item = rows[parts[w].row].item;
    is_global(item.data);
    auto const first = parts[w].number * sum_part;
    bool const full =
        first + sum_part <= item.count && is_wide(item.data, static_cast<int>(bytes_of(item.kind)));
    double sum[wide] = {};
    for (auto i = first + warp::lane() * wide; i < first + sum_part; i += sums) {
      warp::f32 x[wide];
      if (full)
        with_codec_of(item.kind, [&]<class C> { load_four<C>(item.data, i, x); });
      else
        for (int j = 0; j < wide; ++j)
          x[j] = i + j < item.count ? load_one(item.data, item.kind, i + j) : warp::f32(0.0f);
      for (int j = 0; j < wide; ++j) {
        double const v = x[j].v;
        sum[j] = __dadd_rn(sum[j], __dmul_rn(v, v));
      }
    }
    double const all = join(sum);
    if (warp::lane() == 0) out[w] = all;
  }
}

/// One warp sums one part of n values; the last launch writes the root of its only sum.
template <class = void>
__global__ void sum_values(double const* values, std::int64_t n, double* out, bool root) {
  auto const stride = std::int64_t{gridDim.x} * warps_per_block;
  auto part = std::int64_t{blockIdx.x} * warps_per_block + threadIdx.x / warp::lanes;
  for (; part < sum_parts(n); part += stride) {
    auto const first = part * sum_part;
    double sum[wide] = {};
    for (auto i = first + warp::lane() * wide; i < first + sum_part; i += sums)
      for (int j = 0; j < wide; ++j)
        if (i + j < n) sum[j] = __dadd_rn(sum[j], values[i + j]);
    double const all = join(sum);
    if (warp::lane() == 0) out[part] = root ? __dsqrt_rn(all) : all;
  }
}

/// A template, so that a unit that asks for no norm compiles none of its kernels.
template <class = void>
class cuda_squares final : public norm_list {
 public:
  explicit cuda_squares(cuda exec)
      : exec_(exec), table_(exec), norm_(exec.allocate(sizeof(double))) {
    exec_.fill(norm_.data(), 0, norm_.bytes());
  }

  void add(std::int64_t count) override {
    auto const parts = table_.first_part(table_.size()) + sum_parts(count);
    auto const bytes = (parts + sum_parts(parts)) * static_cast<std::int64_t>(sizeof(double));
    buffer more;
    if (bytes > sums_.bytes()) more = exec_.allocate(bytes + bytes / 2);
    table_.add({nullptr, scalar_kind::fp32, count}, count);
    if (more.bytes() > 0) sums_.swap(more);
  }
  void set(std::int64_t index, void const* data, scalar_kind kind) override {
    auto& item = table_[index];
    if (item.data == data && item.kind == kind) return;
    item.data = data;
    item.kind = kind;
    table_.forget();
  }
  double const* compute() override {
    auto* const norm = static_cast<double*>(norm_.data());
    auto n = table_.first_part(table_.size());
    if (n == 0) return norm;
    bool const capturing = table_.begin();
    if (!table_.is_known() || table_.is_captured()) table_.send(capturing);
    auto* from = static_cast<double*>(sums_.data());
    auto* to = from + n;
    launch(exec_, sum_squares<>, grid_for(n, warps_per_block),
           static_cast<table_row<norm_item> const*>(table_.rows()), table_.parts(), n, from);
    for (bool last = false; !last; std::swap(from, to)) {
      last = sum_parts(n) == 1;
      launch(exec_, sum_values<>, grid_for(sum_parts(n), warps_per_block),
             static_cast<double const*>(from), n, last ? norm : to, last);
      n = sum_parts(n);
    }
    return norm;
  }
  double value_sync() const override {
    double x = 0;
    exec_.copy_to_host(&x, norm_.data(), sizeof x);
    return x;
  }

 private:
  cuda exec_;
  device_table<norm_item, sum_part> table_;
  buffer norm_;
  buffer sums_;  // of the parts, and of parts of these
};

}  // namespace memfit::detail
