// Adding tensors to sums in a parameter column on the device, and so converting them.
// Used by the CUDA driver for gradient accumulation and for casts.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memfit/exec/cuda/table.cuh"
#include "memfit/exec/list.hpp"

namespace memfit::detail {

/// Elements that a warp adds at once.
inline constexpr std::int64_t sum_stretch = 4 * tile;

/// The share of one warp in an addition to one tensor.
template <class Column>
class warp_sum {
  using F = warp::f32;
  using U = warp::u32;

 public:
  __device__ warp_sum(sum_item const& item, sum_call const& call)
      : item_(item), call_(call), weight_(call.factor()) {
    is_global(item_.visible);
    if constexpr (keeps) is_global(item_.kept);
    if constexpr (Column::takes_noise) key_ = call.key(item);
  }

  /// Adds elements first … last; whether this thread saw a sum that is not finite.
  __device__ bool operator()(std::int64_t first, std::int64_t last) const {
    bool odd = false;
    if (item_.source == nullptr) {
      if (call_.overwrite) odd = add<no_source, true>(first, last);
    } else {
      with_codec_of(item_.source_kind, [&]<class Source> {
        odd = call_.overwrite ? add<Source, true>(first, last) : add<Source, false>(first, last);
      });
    }
    return odd;
  }

 private:
  static constexpr bool keeps = !std::is_void_v<typename Column::kept>;
  using code = typename Column::code;
  using kept_code = std::conditional_t<keeps, typename Column::kept, code>;
  struct no_source {
    using code = std::uint32_t;
  };
  template <class Source>
  static constexpr bool reads = !std::is_same_v<Source, no_source>;

  template <class Source, bool Overwrite>
  __device__ bool add(std::int64_t first, std::int64_t last) const {
    if constexpr (reads<Source>) is_global(item_.source);
    overflow_watch<F, Column::overflow> watch;
    bool const wide_here = is_wide(item_.visible, sizeof(code)) &&
                           (!keeps || is_wide(item_.kept, sizeof(kept_code))) &&
                           is_wide(item_.source, sizeof(typename Source::code));
    for (auto i = first + warp::lane() * wide; i < last; i += warp::lanes * wide) {
      if (wide_here && i + wide <= last)
        add_four<Source, Overwrite>(i, watch);
      else
        for (auto j = i; j < i + wide && j < last; ++j) add_one<Source, Overwrite>(j, watch);
    }
    return watch.hit();
  }

  template <class Source, bool Overwrite, class Watch>
  __device__ void add_four(std::int64_t i, Watch& watch) const {
    F x[wide] = {};
    if constexpr (reads<Source>) {
      load_four<Source>(item_.source, i, x);
      if (call_.clear_source) {
        U const zeros[wide] = {};
        four<typename Source::code>::pack(zeros).store(
            static_cast<typename Source::code*>(item_.source) + i);
      }
    }
    four<code> seen{};
    four<kept_code> beside{};
    if constexpr (!Overwrite) {
      seen = four<code>::load(visible() + i);
      if constexpr (keeps) beside = four<kept_code>::load(kept() + i);
    }
    U fresh[wide], fresh_beside[wide];
    for (int j = 0; j < wide; ++j) {
      U const old = seen[j];
      auto const c = added<Overwrite>(x[j], old, keeps ? beside[j] : old, i + j, watch);
      fresh[j] = c.visible;
      fresh_beside[j] = c.kept;
    }
    four<code>::pack(fresh).store(visible() + i);
    if constexpr (keeps) four<kept_code>::pack(fresh_beside).store(kept() + i);
  }

  template <class Source, bool Overwrite, class Watch>
  __device__ void add_one(std::int64_t i, Watch& watch) const {
    F x(0.0f);
    if constexpr (reads<Source>) {
      x = load_one(item_.source, item_.source_kind, i);
      if (call_.clear_source) static_cast<typename Source::code*>(item_.source)[i] = 0;
    }
    U seen(0u), beside(0u);
    if constexpr (!Overwrite) {
      seen = U(visible()[i]);
      beside = seen;
      if constexpr (keeps) beside = U(kept()[i]);
    }
    auto const c = added<Overwrite>(x, seen, beside, i, watch);
    visible()[i] = static_cast<code>(c.visible.v);
    if constexpr (keeps) kept()[i] = static_cast<kept_code>(c.kept.v);
  }

  /// The code of one sum, with the gradient x in it.
  template <bool Overwrite, class Watch>
  __device__ parameter_code<U> added(F x, [[maybe_unused]] U seen, [[maybe_unused]] U beside,
                                     [[maybe_unused]] std::int64_t i, Watch& watch) const {
    F const g = weight_ != 0.0f ? x : F(0.0f);
    F sum = g;
    if constexpr (!Overwrite)
      sum = fma(g, F(weight_), Column::decode(seen, beside));
    else if (weight_ != 1.0f)
      sum = product(g, F(weight_));
    watch.see(sum);
    if constexpr (Column::takes_noise)
      return Column::encode(sum, noise(fold_high(key_, i), U(static_cast<std::uint32_t>(i))));
    else
      return Column::encode(sum, U(0u));
  }

  __device__ code* visible() const { return static_cast<code*>(item_.visible); }
  __device__ kept_code* kept() const { return static_cast<kept_code*>(item_.kept); }

  sum_item const& item_;
  sum_call const& call_;
  float const weight_;
  noise_key key_;
};

/// Parts of the table, or those of a single tensor without one.
struct sum_work {
  table_row<sum_item> const* rows;  // null: `single` is the only tensor
  table_part const* parts;
  std::int64_t count;
  sum_call call;
  sum_item single;
};

template <class Column>
__global__ void __launch_bounds__(threads_per_block)
    add_to_sums(__grid_constant__ sum_work const work) {
  bool odd = false;
  auto const stride = std::int64_t{gridDim.x} * warps_per_block;
  auto w = std::int64_t{blockIdx.x} * warps_per_block + threadIdx.x / warp::lanes;
  for (; w < work.count; w += stride) {
    auto const* item = &work.single;
    auto number = w;
    if (work.rows != nullptr) {
      item = &work.rows[work.parts[w].row].item;
      number = work.parts[w].number;
    }
    auto const first = number * sum_stretch, end = first + sum_stretch;
    odd |= warp_sum<Column>(*item, work.call)(first, end < item->count ? end : item->count);
  }
  if (odd && work.call.nonfinite != nullptr) *work.call.nonfinite = 1;
}

/// A single tensor.
template <class Column>
void launch_sum(cuda const& exec, sum_item const& item, sum_call const& call) {
  sum_work work{};
  work.count = block_count(item.count, sum_stretch);
  work.call = call;
  work.single = item;
  launch(exec, add_to_sums<Column>, grid_for(work.count, warps_per_block), work);
}

template <class Column>
class cuda_sums final : public sum_list {
 public:
  explicit cuda_sums(cuda exec) : exec_(exec), table_(exec) {}

  bool reaches(void const* data) const override { return is_reached(exec_, data); }
  void add(sum_item const& item) override { table_.add(item, item.count); }
  void set(std::int64_t index, void* source, scalar_kind kind) override {
    auto& item = table_[index];
    item.source = source;
    item.source_kind = kind;
    table_.forget();
  }
  void run(sum_call const& call) override {
    if (table_.size() == 0) return;
    bool const capturing = table_.begin();
    if (!table_.is_known() || table_.is_captured()) table_.send(capturing);
    sum_work work{};
    work.rows = table_.rows();
    work.parts = table_.parts();
    work.count = table_.first_part(table_.size());
    work.call = call;
    launch(exec_, add_to_sums<Column>, grid_for(work.count, warps_per_block), work);
  }

 private:
  cuda exec_;
  device_table<sum_item, sum_stretch> table_;
};

}  // namespace memfit::detail
