// The dry run of layerwise rules on the device: reads the columns that the direction needs, and
// gives each tensor its norms. Used by the CUDA driver before the step of such a rule.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "memfit/exec/cuda/norm.cuh"
#include "memfit/exec/dry_run.hpp"

namespace memfit::detail {

/// The dry run of one tensor by one warp, all of whose threads call every member together.
template <class Rule, class Format, class Column>
class warp_dry_run {
  using F = warp::f32;
  using U = warp::u32;

 public:
  __device__ warp_dry_run(step_item<Rule> const& item, float multiplier, float limit)
      : item_(item),
        k_(item.constants),
        multiplier_(multiplier),
        limit_(limit),
        is_wide_(is_wide_item(all_slots())) {
    is_global(item_.visible);
    is_global(item_.gradient);
    if constexpr (keeps) is_global(item_.kept);
  }

  /// The squares of the part that begins at `first`; in the first thread.
  __device__ layer_squares operator()(std::int64_t first) const {
    double parameter[wide] = {}, direction[wide] = {};
#pragma unroll 1
    for (auto run = first; run < first + sum_part && run < item_.count; run += sums) {
      F p[wide], u[wide];
      measure(run, p, u, all_slots());
      for (int j = 0; j < wide; ++j) {
        add_square(parameter[j], p[j]);
        add_square(direction[j], u[j]);
      }
    }
    double const of_parameter = join(parameter);
    return {of_parameter, join(direction)};
  }

 private:
  static constexpr bool keeps = !std::is_void_v<typename Column::kept>;
  using code = typename Column::code;
  using kept_code = std::conditional_t<keeps, typename Column::kept, code>;
  static constexpr int slots = slot_count<Rule>;
  static constexpr int arrays = slots > 0 ? slots : 1;
  __device__ static constexpr auto all_slots() {
    return std::make_integer_sequence<int, slots>();
  }

  template <int... I>
  __device__ bool is_wide_item(std::integer_sequence<int, I...>) const {
    bool const moments = (is_wide<slot_codec<Rule, Format, I>>(item_.moments[I].codes) && ...);
    return moments && is_wide(item_.visible, sizeof(code)) &&
           (!keeps || is_wide(item_.kept, sizeof(kept_code))) &&
           is_wide(item_.gradient, static_cast<int>(bytes_of(item_.gradient_kind)));
  }

  __device__ static void add_square(double& sum, F x) {
    double const v = x.v;
    sum = __dadd_rn(sum, __dmul_rn(v, v));
  }

  /// Parameters and directions of this thread's elements of a run, zeros for those that do not
  /// count.
  template <int... I>
  __device__ void measure(std::int64_t run, F (&p)[wide], F (&u)[wide],
                          std::integer_sequence<int, I...> sequence) const {
    bool const full = is_wide_ && run + sums <= item_.count;
    auto const i = run + warp::lane() * wide;
    F g[wide], s[arrays][wide] = {};
    load_gradients(i, full, g);
    load_parameters(i, full, p);
    if constexpr (directs_by_slots<Rule>) (load_moments<I>(i, full, s[I]), ...);
    for (int j = 0; j < wide; ++j) {
      g[j] = product(g[j], F(multiplier_));
      F of_element[arrays] = {s[I][j]...};
      u[j] = direction(p[j], limited(g[j], limit_), of_element);
      bool const all =
          i + j < item_.count && counts<Rule, Format>(p[j], g[j], u[j], of_element, sequence);
      p[j] = all ? p[j] : F(0.0f);
      u[j] = all ? u[j] : F(0.0f);
    }
  }

  /// The direction, for lanes or for the plain float that the rule was written for.
  __device__ F direction(F const& p, F const& g, F (&s)[arrays]) const {
    if constexpr (!directs_by_slots<Rule> && directs_value<Rule, F>) {
      return k_.direction(p, g);
    } else if constexpr (!directs_by_slots<Rule>) {
      return k_.direction(p.v, g.v);
    } else if constexpr (directs_value<Rule, F>) {
      return k_.direction(p, g, s);
    } else {
      float plain[arrays];
      for (int i = 0; i < slots; ++i) plain[i] = s[i].v;
      F const u = k_.direction(p.v, g.v, plain);
      for (int i = 0; i < slots; ++i) s[i] = plain[i];
      return u;
    }
  }

  /// Element i + j, or the last one: all threads read, and decode together.
  __device__ std::int64_t inside(std::int64_t i, int j) const {
    return i + j < item_.count ? i + j : item_.count - 1;
  }
  __device__ void load_gradients(std::int64_t i, bool full, F (&g)[wide]) const {
    if (full)
      with_codec_of(item_.gradient_kind, [&]<class C> { load_four<C>(item_.gradient, i, g); });
    else
      for (int j = 0; j < wide; ++j)
        g[j] = load_one(item_.gradient, item_.gradient_kind, inside(i, j));
  }
  __device__ void load_parameters(std::int64_t i, bool full, F (&p)[wide]) const {
    U seen[wide], beside[wide];
    load_codes(static_cast<code const*>(item_.visible), i, full, seen);
    if constexpr (keeps) load_codes(static_cast<kept_code const*>(item_.kept), i, full, beside);
    for (int j = 0; j < wide; ++j) p[j] = Column::decode(seen[j], keeps ? beside[j] : seen[j]);
  }
  template <int I>
  __device__ void load_moments(std::int64_t i, bool full, F (&s)[wide]) const {
    using S = slot_storage<Rule, Format, I>;
    using C = typename S::codec;
    auto const* const codes = static_cast<typename C::code const*>(item_.moments[I].codes);
    float const scale = S::load_scale(item_.moments[I].scales, block_of<S::block>(inside(i, 0)));
    U c[wide];
    if (full) {
      auto const four = four_of<C>::load(code_at<C>(codes, i));
      for (int j = 0; j < wide; ++j) c[j] = four[j];
    } else {
      for (int j = 0; j < wide; ++j) c[j] = U(load_code<C>(codes, inside(i, j)));
    }
    for (int j = 0; j < wide; ++j) s[j] = moment_value<C, S::values>(c[j], F(scale));
  }
  template <class Code>
  __device__ void load_codes(Code const* from, std::int64_t i, bool full, U (&c)[wide]) const {
    if (full) {
      auto const codes = four<Code>::load(from + i);
      for (int j = 0; j < wide; ++j) c[j] = codes[j];
    } else {
      for (int j = 0; j < wide; ++j) c[j] = U(from[inside(i, j)]);
    }
  }

  step_item<Rule> const& item_;
  constants_of<Rule> const k_;
  float const multiplier_, limit_;
  bool const is_wide_;  // all columns are aligned
};

/// The dry run of tensors first … first + count - 1 of a table, and of their parts.
template <class Rule>
struct dry_run_work {
  table_row<step_item<Rule>>* rows;
  std::int64_t first, count;
  table_part const* parts;
  std::int64_t part_count;
  gate gate_at;
  layer_squares* squares;  // of all parts of the table

  __device__ bool skips() const { return gate_at.skip != nullptr && *gate_at.skip != 0; }
  /// The squares of a row's parts, which have PartSize elements in the table.
  template <std::int64_t PartSize>
  __device__ layer_squares* of(table_row<step_item<Rule>> const& row) const {
    return squares + row.first_part * (PartSize / sum_part);
  }
};

template <class Rule, class Format, class Column, std::int64_t PartSize>
__global__ void __launch_bounds__(threads_per_block) dry_run(dry_run_work<Rule> const work) {
  if (work.skips()) return;
  auto const& g = work.gate_at;
  float const multiplier = g.multiplier != nullptr ? *g.multiplier : 1.0f;
  auto const stride = std::int64_t{gridDim.x} * warps_per_block;
  auto w = std::int64_t{blockIdx.x} * warps_per_block + threadIdx.x / warp::lanes;
  for (; w < work.part_count; w += stride) {
    auto const part = work.parts[w];
    auto const& row = work.rows[part.row];
    auto* const to = work.template of<PartSize>(row);
    warp_dry_run<Rule, Format, Column> const run(row.item, multiplier, g.limit);
    auto const begin = part.number * PartSize, end = begin + PartSize;
    for (auto i = begin; i < end && i < row.item.active(); i += sum_part) {
      auto const squares = run(i);
      if (warp::lane() == 0) to[i / sum_part] = squares;
    }
  }
}

/// One block gives one tensor the norms that its n parts make.
template <class Rule>
__device__ void take_norms(step_item<Rule>& item, layer_squares const* parts, std::int64_t n) {
  static_assert(threads_per_block == sums);
  auto const me = static_cast<int>(threadIdx.x);
  __shared__ layer_squares sum[sums];
  layer_squares own{};
#pragma unroll 8
  for (auto i = std::int64_t{me}; i < n; i += sums) {
    own.parameter = __dadd_rn(own.parameter, parts[i].parameter);
    own.direction = __dadd_rn(own.direction, parts[i].direction);
  }
  sum[me] = own;
  for (int reach = sums / 2; reach > 0; reach /= 2) {
    __syncthreads();
    if (me >= reach) continue;
    sum[me].parameter = __dadd_rn(sum[me].parameter, sum[me + reach].parameter);
    sum[me].direction = __dadd_rn(sum[me].direction, sum[me + reach].direction);
  }
  if (me == 0)
    item.constants = item.constants.with(
        layer_norms{__dsqrt_rn(sum[0].parameter), __dsqrt_rn(sum[0].direction)});
  __syncthreads();
}

template <class Rule, std::int64_t PartSize>
__global__ void __launch_bounds__(threads_per_block) give_norms(dry_run_work<Rule> const work) {
  if (work.skips()) return;
  for (auto i = std::int64_t{blockIdx.x}; i < work.count; i += gridDim.x) {
    auto& row = work.rows[work.first + i];
    if (auto const n = sum_parts(row.item.active()); n != 0)
      take_norms(row.item, work.template of<PartSize>(row), n);
  }
}

/// Gives the constants of every tensor its norms.
template <class Rule, class Format, class Column, std::int64_t PartSize>
void launch_dry_run(cuda const& exec, dry_run_work<Rule> const& work) {
  static_assert(PartSize % sum_part == 0);
  if (work.part_count == 0) return;
  launch(exec, dry_run<Rule, Format, Column, PartSize>, grid_for(work.part_count, warps_per_block),
         work);
  launch(exec, give_norms<Rule, PartSize>, grid_for(work.count, 1), work);
}

/// Bytes of the squares of so many parts of PartSize elements.
template <std::int64_t PartSize>
constexpr std::int64_t squares_bytes(std::int64_t parts) {
  return parts * (PartSize / sum_part) * static_cast<std::int64_t>(sizeof(layer_squares));
}

/// Memory of the stream's order, for as long as the work that is launched while this lives.
class passing_memory {
 public:
  passing_memory(cuda const& exec, std::int64_t bytes) : exec_(exec) {
    on_device_of const device(exec_);
    auto const error = cudaMallocAsync(&data_, static_cast<std::size_t>(bytes), exec_.stream());
    if (error == cudaSuccess) return;
    cudaGetLastError();
    throw memory_error("memfit::cuda: " + words_of("cudaMallocAsync", error) +
                       ": cannot allocate " + std::to_string(bytes) + " bytes");
  }
  passing_memory(passing_memory const&) = delete;
  passing_memory& operator=(passing_memory const&) = delete;
  ~passing_memory() { cudaFreeAsync(data_, exec_.stream()); }
  void* data() const { return data_; }

 private:
  cuda exec_;
  void* data_ = nullptr;
};

template <class Rule>
struct place_row {
  table_row<step_item<Rule>>* to;
  step_item<Rule> item;
  MEMFIT_HD void operator()() const { *to = {item, 0}; }
};

}  // namespace memfit::detail
