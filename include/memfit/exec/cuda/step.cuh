// One step of a rule on the device: a warp takes a tile of every column, reads and writes it once.
// Used by the CUDA driver's kernel; knows no rule, no codec and no parameter column by name.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "memfit/exec/cuda/tile.cuh"

namespace memfit::detail {

/// The step of one tensor by one warp, all of whose threads call every member together.
template <class Rule, class Format, class Column>
class warp_step {
  using F = warp::f32;
  using U = warp::u32;

 public:
  static constexpr int slots = slot_count<Rule>;
  static constexpr int arrays = slots > 0 ? slots : 1;
  template <int I>
  using storage_at = slot_storage<Rule, Format, I>;

  __device__ static constexpr auto all_slots() { return std::make_integer_sequence<int, slots>(); }
  template <int... I>
  static constexpr int largest_block(std::integer_sequence<int, I...>) {
    int most = slots > 0 ? 0 : tile;
    ((most = storage_at<I>::block > most ? storage_at<I>::block : most), ...);
    return most;
  }
  template <int... I>
  static constexpr int smallest_block(int most, std::integer_sequence<int, I...>) {
    ((most = storage_at<I>::block < most ? storage_at<I>::block : most), ...);
    return most;
  }
  /// Elements of the largest block of all slots, of a unit, and of the part of a tensor that a warp
  /// is given.
  static constexpr int largest = largest_block(std::make_integer_sequence<int, slots>());
  static constexpr int unit = unit_of<largest>;
  static constexpr int part = unit > 4 * tile ? unit : 4 * tile;

  __device__ warp_step(step_item<Rule> const& item, float multiplier, float limit)
      : item_(item),
        k_(item.constants),
        multiplier_(multiplier),
        limit_(limit),
        is_usual_(!limits(limit) && is_wide_item(all_slots())) {
    is_global(item_.visible);
    is_global(item_.gradient);
    if constexpr (keeps) is_global(item_.kept);
    for (int i = 0; i < slots; ++i) is_global(item_.moments[i].codes);
    know_slots(all_slots());
  }

  /// Steps elements first … last of a part that begins at `first`; returns how many this warp left
  /// alone.
  __device__ unsigned operator()(std::int64_t first, std::int64_t last) {
    unsigned left_alone = 0;
    int const n = static_cast<int>(last - first), usual = is_usual_ ? n : 0;
    for (int at = 0; at < n; at += unit)
      if (!(at + unit <= usual && ordinary(first + at, at / unit, all_slots())))
        for (int begin = at; begin < n && begin < at + unit; begin += largest)
          left_alone += careful(first + begin, n - begin, all_slots());
    write_held(first, all_slots());
    return left_alone;
  }

 private:
  static constexpr bool keeps = !std::is_void_v<typename Column::kept>;
  using kept_code = std::conditional_t<keeps, typename Column::kept, std::uint16_t>;

  template <int I>
  using codec_at = typename storage_at<I>::codec;
  template <int I>
  using code_at = typename storage_at<I>::code;
  template <int I>
  static constexpr range range_at = storage_at<I>::values;
  template <int I>
  static constexpr int block_at = storage_at<I>::block;
  template <int I>
  using layout_at = layout<block_at<I>>;

  /// Blocks of a slot are whole units or, where these are no more than a tile, parts of them; else
  /// they are parts of a tile, or several tiles.
  template <int I>
  static constexpr bool ends_with_unit = unit == tile || block_at<I> == unit;
  template <int I>
  static constexpr bool ends_with_tile = !ends_with_unit<I> && block_at<I> <= tile;
  /// Blocks that are several tiles of a unit.
  using blocks_of_unit = warp_array<unit / tile>;

  /// What a thread holds of a tile.
  struct values {
    F p[runs][wide];
    F s[arrays][runs][wide];
  };
  /// Scales of the blocks that a thread's runs belong to, or the first alone.
  struct scales {
    float of[arrays][runs];
  };
  struct maxima {
    float of[arrays][runs];
  };

  template <int... I>
  __device__ bool is_wide_item(std::integer_sequence<int, I...>) const {
    bool const moments = (is_wide<codec_at<I>>(item_.moments[I].codes) && ...);
    return moments && is_wide(item_.visible, sizeof(typename Column::code)) &&
           (!keeps || is_wide(item_.kept, sizeof(kept_code))) &&
           is_wide(item_.gradient, static_cast<int>(bytes_of(item_.gradient_kind)));
  }

  template <int... I>
  __device__ void know_slots(std::integer_sequence<int, I...>) {
    (know_slot<I>(), ...);
  }
  template <int I>
  __device__ void know_slot() {
    if constexpr (codec_at<I>::scaled) is_global(item_.moments[I].scales), held_[I] = nothing;
    if constexpr (storage_at<I>::at_random) key_[I] = slot_key(item_.key, I);
  }
  __device__ typename Column::code* visible() const {
    return static_cast<typename Column::code*>(item_.visible);
  }
  __device__ kept_code* kept() const { return static_cast<kept_code*>(item_.kept); }
  template <int I>
  __device__ code_at<I>* codes() const {
    return static_cast<code_at<I>*>(item_.moments[I].codes);
  }

  /// The scale of the block of element i.
  template <int I>
  __device__ float load_scale(std::int64_t i) const {
    return storage_at<I>::load_scale(item_.moments[I].scales, block_of<block_at<I>>(i));
  }
  template <int I>
  __device__ void load_scales(std::int64_t first, scales& to) const {
    for (int g = 0; g < layout_at<I>::groups; ++g) to.of[I][g] = load_scale<I>(place(first, g));
  }

  /// The usual case: everything finite, scales ordinary, no limit. False: nothing is written.
  template <int... I>
  __device__ bool ordinary(std::int64_t first, int number,
                           std::integer_sequence<int, I...> sequence) {
    values x;
    scales old;
    ((ends_with_unit<I> ? load_scales<I>(first, old) : void()), ...);
    maxima most = {};
    [[maybe_unused]] blocks_of_unit blocks[arrays];
    bool odd = false, fades = false;
    for (int at = 0; at < unit; at += tile) {
      (begin_tile<I>(first + at, old, most), ...);
      odd |= update(first + at, old, x, most, fades, sequence);
      ((odd |= end_tile<I>(at, old, most, blocks[I])), ...);
    }
    ((odd |= end_unit<I>(old, most, blocks[I])), ...);
    if (__any_sync(warp::everyone, odd)) return false;
    fades = __any_sync(warp::everyone, fades);
    number *= unit / tile;
    for (int at = 0; at < unit; at += tile) {
      if constexpr (unit > tile) {
        (begin_tile<I>(first + at, old, most), ...);
        update(first + at, old, x, most, fades, sequence);
        (know_tile<I>(at, old, most, blocks[I]), ...);
      }
      (write_moment<I>(first + at, x.s[I], most, fades), ...);
      write_parameter(first + at, x.p);
      ((ends_with_unit<I> ? void() : write_scales<I>(first + at, number + at / tile, most)), ...);
    }
    ((ends_with_unit<I> ? write_scales<I>(first, number, most) : void()), ...);
    return true;
  }

  /// Blocks that end within a unit: their old scales in this tile, and maxima from zero.
  template <int I>
  __device__ void begin_tile(std::int64_t first, scales& old, maxima& most) const {
    if constexpr (!ends_with_unit<I>) {
      load_scales<I>(first, old);
      for (auto& m : most.of[I]) m = 0.0f;
    }
  }
  /// Takes their maxima over; true where something is out of the ordinary.
  template <int I>
  __device__ static bool end_tile(int at, scales const& old, maxima& most, blocks_of_unit& blocks) {
    if constexpr (ends_with_unit<I>) {
      return false;
    } else if constexpr (ends_with_tile<I>) {
      return share<I>(old, most);
    } else {
      auto const m = largest_of<warp::lanes>(bits(most.of[I][0]));
      blocks.at(at / block_at<I>, [&](std::uint32_t& x) { x = ops<float>::larger(x, m); });
      return vanishes<I>(old.of[I][0]);
    }
  }
  /// Makes maxima scales: those of units, and those of several tiles.
  template <int I>
  __device__ static bool end_unit(scales const& old, maxima& most, blocks_of_unit& blocks) {
    bool odd = false;
    if constexpr (ends_with_unit<I>)
      odd = share<I>(old, most);
    else if constexpr (!ends_with_tile<I>)
      blocks.for_own([&](int, std::uint32_t& m) {
        m = storage_at<I>::scale_for(m);
        odd |= is_odd<I>(m);
      });
    return odd;
  }
  /// The scales of this tile once more.
  template <int I>
  __device__ static void know_tile(int at, scales const& old, maxima& most,
                                   blocks_of_unit const& blocks) {
    if constexpr (ends_with_tile<I>)
      share<I>(old, most);
    else if constexpr (!ends_with_unit<I>)
      most.of[I][0] = from_bits<float>(blocks[at / block_at<I>]);
  }

  /// Reads and updates a tile; true where something is out of the ordinary.
  template <int... I>
  __device__ bool update(std::int64_t first, [[maybe_unused]] scales const& old, values& x,
                         [[maybe_unused]] maxima& most, bool& fades,
                         std::integer_sequence<int, I...>) const {
    overflow_watch<F, infinity_bits> gradients;
    overflow_watch<F, Column::overflow> parameters;
    F least(1.0f);
#pragma unroll
    for (int r = 0; r < runs; ++r) {
      F g[wide];
      with_codec_of(item_.gradient_kind, [&]<class G> {
        load_four<G>(item_.gradient, place(first, r), g);
        for (auto& x : g) x = product(x, F(multiplier_));
      });
      load_parameter(place(first, r), x.p[r]);
      (load_moment_codes<I>(place(first, r), old.of[I][r % layout_at<I>::groups], x.s[I][r]), ...);
#pragma unroll
      for (int j = 0; j < wide; ++j) {
        gradients.see(g[j]);
        least = fminf(least.v, fabsf(g[j].v));
        F s[arrays] = {x.s[I][r][j]...};
        apply(x.p[r][j], g[j], s);
        parameters.see(x.p[r][j]);
        ((x.s[I][r][j] = s[I], grow<I>(most.of[I][r % layout_at<I>::groups], s[I])), ...);
      }
    }
    fades |= least.v == 0.0f;
    return gradients.hit() | parameters.hit();
  }

  /// The rule, for lanes or for the plain float that it was written for. Called here and not in a
  /// function for both sides, so that a rule for the host alone is refused.
  __device__ void apply(F& p, F g, F (&s)[arrays]) const {
    if constexpr (slots == 0 && fits_value<Rule, F>) {
      k_(p, g);
    } else if constexpr (slots == 0) {
      k_(p.v, g.v);
    } else if constexpr (fits_value<Rule, F>) {
      k_(p, g, s);
    } else {
      float plain[arrays];
      for (int i = 0; i < slots; ++i) plain[i] = s[i].v;
      k_(p.v, g.v, plain);
      for (int i = 0; i < slots; ++i) s[i] = plain[i];
    }
  }

  /// Brings together the maxima of threads that share blocks; true where a scale, old or new, or a
  /// moment without scale is out of the ordinary.
  template <int I>
  __device__ static bool share(scales const& old, maxima& most) {
    bool odd = false;
    for (int g = 0; g < layout_at<I>::groups; ++g) {
      auto m = bits(most.of[I][g]);
      if constexpr (codec_at<I>::scaled) {
        m = storage_at<I>::scale_for(largest_of<layout_at<I>::sharing>(m));
        most.of[I][g] = from_bits<float>(m);
        odd |= vanishes<I>(old.of[I][g]);
      }
      odd |= is_odd<I>(m);
    }
    return odd;
  }

  /// Whether a new scale, or a maximum without scale, is out of the ordinary.
  template <int I>
  __device__ static bool is_odd(std::uint32_t m) {
    if constexpr (codec_at<I>::scaled)
      return !ordinary_scale(m);
    else
      return m >= codec_at<I>::overflow;
  }

  /// Whether some code above zero might have the value zero under this scale.
  template <int I>
  __device__ static bool vanishes(float scale) {
    constexpr float least = 0x1p-100f;
    return codec_at<I>::scaled && range_at<I> == range::non_negative && scale != 0.0f &&
           !(scale >= least);
  }

  /// A negative value where there must be none is out of every range.
  template <int I>
  __device__ static void grow(float& most, F s) {
    if constexpr (range_at<I> == range::non_negative)
      most = from_bits<float>(larger(bits(F(most)), bits(s)).v);
    else
      most = warp::greater_magnitude(most, s.v);
  }

  __device__ void load_parameter(std::int64_t i, F (&p)[wide]) const {
    auto const seen = four<typename Column::code>::load(visible() + i);
    if constexpr (keeps) {
      auto const beside = four<kept_code>::load(kept() + i);
      for (int j = 0; j < wide; ++j) p[j] = Column::decode(seen[j], beside[j]);
    } else {
      for (int j = 0; j < wide; ++j) p[j] = Column::decode(seen[j], seen[j]);
    }
  }
  template <int I>
  __device__ void load_moment_codes(std::int64_t i, float scale, F (&s)[wide]) const {
    load_four<codec_at<I>>(codes<I>(), i, s);
    if constexpr (codec_at<I>::scaled)
      for (int j = 0; j < wide; ++j) s[j] = product(s[j], F(scale));
  }

  /// What goes along with the new moments of a tile.
  template <int I>
  struct company {
    warp_step const& step;
    std::int64_t first;
    bool fades;
    noise_key key;
    __device__ bool fading(int r, int j) const {
      return fades && step.gradient(place(first, r) + j) == F(0.0f);
    }
    __device__ U noise(int r, int j) const {
      return memfit::noise(key, U(static_cast<std::uint32_t>(place(first, r) + j)));
    }
  };
  template <int I>
  __device__ void write_moment(std::int64_t first, F const (&s)[runs][wide], maxima const& most,
                               bool fades) const {
    noise_key key;
    if constexpr (storage_at<I>::at_random) key = fold_high(key_[I], first);
    four_of<codec_at<I>> c[runs];
    code_tile<storage_at<I>, rounding::moment_nearly, rounding::fading_moment>(
        s, most.of[I], company<I>{*this, first, fades && range_at<I> == range::any, key}, c);
    for (int r = 0; r < runs; ++r) c[r].store(storage_at<I>::at(codes<I>(), place(first, r)));
  }
  /// Element i of the gradient, multiplied.
  __device__ F gradient(std::int64_t i) const {
    return product(load_one(item_.gradient, item_.gradient_kind, i), F(multiplier_));
  }

  /// The new scales of the blocks in a tile, which is the `number`th of the part. Those of a part
  /// are held, each by one thread, and written together, unless they are too many.
  template <int I>
  __device__ void write_scales(std::int64_t first, int number, maxima const& most) {
    using L = layout_at<I>;
    constexpr int of_run = warp::lanes / L::sharing;
    if constexpr (!codec_at<I>::scaled) return;
    if constexpr (are_held<I>) {
      auto const own = static_cast<unsigned>(warp::lane() - number * tile / block_at<I>);
      for (int g = 0; g < L::groups; ++g) {
        float m = most.of[I][g];
        if constexpr (of_run > 1)
          m = __shfl_sync(warp::everyone, m, warp::lane() % of_run * L::sharing);
        if (own / of_run == static_cast<unsigned>(g)) held_[I] = m;
      }
    } else if (warp::lane() % L::sharing == 0) {
      for (int g = 0; g < L::groups; ++g)
        store_scale<I>(block_of<block_at<I>>(place(first, g)), bits(most.of[I][g]));
    }
  }
  template <int I>
  static constexpr bool are_held = part / block_at<I> <= warp::lanes;
  /// What a thread holds of no block.
  static constexpr float nothing = -1.0f;

  template <int... I>
  __device__ void write_held(std::int64_t start, std::integer_sequence<int, I...>) const {
    (write_held<I>(start), ...);
  }
  template <int I>
  __device__ void write_held([[maybe_unused]] std::int64_t start) const {
    if constexpr (codec_at<I>::scaled && are_held<I>)
      if (held_[I] != nothing)
        store_scale<I>(block_of<block_at<I>>(start) + warp::lane(), bits(held_[I]));
  }

  __device__ parameter_code<U> parameter_codes(F p, std::int64_t i) const {
    if constexpr (Column::takes_noise)
      return Column::encode(p, noise(fold_high(item_.key, i), U(static_cast<std::uint32_t>(i))));
    else
      return Column::encode(p, U(0u));
  }
  __device__ void write_parameter(std::int64_t first, F const (&p)[runs][wide]) const {
#pragma unroll
    for (int r = 0; r < runs; ++r) {
      U seen[wide], beside[wide];
#pragma unroll
      for (int j = 0; j < wide; ++j) {
        auto const code = parameter_codes(p[r][j], place(first, r) + j);
        seen[j] = code.visible;
        beside[j] = code.kept;
      }
      four<typename Column::code>::pack(seen).store(visible() + place(first, r));
      if constexpr (keeps) four<kept_code>::pack(beside).store(kept() + place(first, r));
    }
  }

  /// One element in any case, of a block's `n`.
  struct element {
    bool inside, moves;
    F g, p;
    F s[arrays];
  };
  template <int... I>
  __device__ element careful_element(std::int64_t begin, int e, int n,
                                     [[maybe_unused]] float const (&old)[arrays],
                                     std::integer_sequence<int, I...>) const {
    element x{};
    x.inside = e < n;
    auto const i = begin + (x.inside ? e : 0);
    x.g = gradient(i);
    U const seen(visible()[i]);
    U beside = seen;
    if constexpr (keeps) beside = U(kept()[i]);
    x.p = Column::decode(seen, beside);
    F const before[arrays] = {moment_value<codec_at<I>, range_at<I>>(
        U(load_code<codec_at<I>>(codes<I>(), i)), F(is_largest<I> ? old[I] : load_scale<I>(i)))...};
    ((x.s[I] = before[I]), ...);
    x.moves = finite(x.g, infinity_bits);
    apply(x.p, limited(x.moves ? x.g : F(0.0f), limit_), x.s);
    ((x.moves &= finite(x.s[I], moment_limit<codec_at<I>>)), ...);
    x.moves &= finite(x.p, Column::overflow);
    ((x.s[I] = x.inside ? (x.moves ? x.s[I] : before[I]) : F(0.0f)), ...);
    return x;
  }
  __device__ static bool finite(F x, std::uint32_t limit) {
    return (bits(x).v & 0x7fffffffu) < limit;
  }

  /// Maxima of the careful way: over the largest blocks each thread gathers its own, and what is
  /// smaller has an element for each block, which becomes its scale.
  template <int I>
  static constexpr bool is_largest = block_at<I> == largest;
  using small_blocks =
      warp_array<largest / smallest_block(largest, std::make_integer_sequence<int, slots>())>;
  struct careful_maxima {
    std::uint32_t of[arrays] = {};
    small_blocks in[arrays];
  };
  /// Marks a block in which something moves; and what stands for the scale of one in which nothing
  /// does.
  static constexpr std::uint32_t moving = 0x80000000u, unmoved = 0xffffffffu;

  template <int I>
  __device__ static void gather(element const& x, int e, careful_maxima& most) {
    auto const m = bits(x.s[I]).v & 0x7fffffffu;
    if constexpr (is_largest<I>) {
      most.of[I] = ops<float>::larger(most.of[I], m);
    } else {
      auto const all = largest_of<warp::lanes>(m);
      auto const moves = __any_sync(warp::everyone, x.inside & x.moves) ? moving : 0u;
      most.in[I].at(e / block_at<I>, [&](std::uint32_t& y) {
        y = ops<float>::larger(y & ~moving, all) | (y & moving) | moves;
      });
    }
  }
  template <int I>
  __device__ static void end_gathering(careful_maxima& most) {
    if constexpr (is_largest<I>)
      most.of[I] = storage_at<I>::scale_for(largest_of<warp::lanes>(most.of[I]));
    else
      most.in[I].for_own([](int, std::uint32_t& y) {
        y = (y & moving) != 0 ? storage_at<I>::scale_for(y & ~moving) : unmoved;
      });
  }

  /// Any case: blocks in part, of which there are `rest` elements, elements to leave alone, extreme
  /// scales, unaligned memory. Computes every element twice, for the scale and for its code.
  template <int... I>
  __device__ unsigned careful(std::int64_t begin, int rest,
                              std::integer_sequence<int, I...> sequence) const {
    int const n = rest < largest ? rest : largest;
    float old[arrays] = {};
    ((old[I] = is_largest<I> ? load_scale<I>(begin) : 0.0f), ...);
    [[maybe_unused]] careful_maxima most;
    unsigned left_alone = 0;
    bool moved = false;
#pragma unroll 1
    for (int e = warp::lane(); e < largest; e += warp::lanes) {
      auto const x = careful_element(begin, e, n, old, sequence);
      (gather<I>(x, e, most), ...);
      moved |= x.inside & x.moves;
      left_alone += x.inside & !x.moves ? 1u : 0u;
    }
    (end_gathering<I>(most), ...);
    // A block in which nothing moves keeps its codes and scale as they are.
    if (!__any_sync(warp::everyone, moved)) return left_alone;
#pragma unroll 1
    for (int e = warp::lane(); e < largest; e += warp::lanes) {
      auto const x = careful_element(begin, e, n, old, sequence);
      (store_careful<I>(begin, e, x, most), ...);
      auto const code = parameter_codes(x.p, begin + e);
      if (x.inside & x.moves) {
        visible()[begin + e] = static_cast<typename Column::code>(code.visible.v);
        if constexpr (keeps) kept()[begin + e] = static_cast<kept_code>(code.kept.v);
      }
    }
    __syncwarp();  // all have read the old scales
    (store_scales<I>(begin, most), ...);
    return left_alone;
  }
  template <int I>
  __device__ void store_careful(std::int64_t begin, int e, element const& x,
                                careful_maxima const& most) const {
    auto const scale = is_largest<I> ? most.of[I] : most.in[I][e / block_at<I>];
    code_masks<F> masks;
    masks.fading = (x.moves ? x.g : F(1.0f)) == F(0.0f);
    if constexpr (storage_at<I>::at_random)
      masks.noise = noise(fold_high(key_[I], begin), U(static_cast<std::uint32_t>(begin + e)));
    U const c = coded<storage_at<I>, rounding::fading_moment>(
        x.s[I], normalizer<F, true>(from_bits<float>(scale)), masks);
    store_each<codec_at<I>>(codes<I>(), begin + e, c, x.inside && scale != unmoved);
  }
  template <int I>
  __device__ void store_scales(std::int64_t begin, careful_maxima& most) const {
    auto const b = block_of<block_at<I>>(begin);
    if constexpr (!is_largest<I>)
      most.in[I].for_own([&](int i, std::uint32_t scale) {
        if (scale != unmoved) store_scale<I>(b + i, scale);
      });
    else if (warp::lane() == 0)
      store_scale<I>(b, most.of[I]);
  }
  template <int I>
  __device__ void store_scale(std::int64_t b, std::uint32_t pattern) const {
    storage_at<I>::store_scale(item_.moments[I].scales, b, pattern);
  }

  step_item<Rule> const item_;
  constants_of<Rule> const k_;
  float const multiplier_, limit_;
  bool const is_usual_;  // columns aligned, gradients without a limit
  float held_[arrays];   // the scale of a block of the part, the one whose number is this thread's
  noise_key key_[arrays];
};

}  // namespace memfit::detail
