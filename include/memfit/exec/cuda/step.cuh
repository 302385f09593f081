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
  static constexpr int block = format_traits<Format, range::any>::block;
  static constexpr int unit = unit_of<block>;

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
    know_scales(all_slots());
  }

  /// Steps elements first … last, at most as many units as there are lanes; returns how many this
  /// warp left alone.
  __device__ unsigned operator()(std::int64_t first, std::int64_t last) {
    unsigned left_alone = 0;
    auto const start = first;
    for (int number = 0; first < last; first += unit, ++number)
      if (!(is_usual_ && first + unit <= item_.count && ordinary(first, number, all_slots())))
        for (auto begin = first; begin < last && begin < first + unit; begin += block)
          left_alone += careful(begin, all_slots());
    write_held(start, all_slots());
    return left_alone;
  }

 private:
  static constexpr bool keeps = !std::is_void_v<typename Column::kept>;
  using kept_code = std::conditional_t<keeps, typename Column::kept, std::uint16_t>;
  static constexpr int groups = layout<block>::groups;

  template <int I>
  using codec_at = slot_codec<Rule, Format, I>;
  template <int I>
  using code_at = typename codec_at<I>::code;
  template <int I>
  static constexpr range range_at = Rule::slots[I].range;
  template <int I>
  static constexpr scaling scaling_at = Rule::slots[I].scaling;
  /// The scale of a block whose new moments of slot I have this largest magnitude.
  template <int I>
  __device__ static std::uint32_t new_scale(std::uint32_t most) {
    return scale_for<codec_at<I>, scaling_at<I>>(most);
  }
  __device__ static constexpr auto all_slots() { return std::make_integer_sequence<int, slots>(); }

  /// What a thread holds of a tile.
  struct values {
    F p[runs][wide];
    F s[arrays][runs][wide];
  };
  /// Scales of the blocks that a thread's runs belong to.
  struct scales {
    float of[arrays][groups];
  };
  struct maxima {
    float of[arrays][groups];
  };

  template <int... I>
  __device__ bool is_wide_item(std::integer_sequence<int, I...>) const {
    bool const moments = (is_wide(item_.moments[I].codes, sizeof(code_at<I>)) && ...);
    return moments && is_wide(item_.visible, sizeof(typename Column::code)) &&
           (!keeps || is_wide(item_.kept, sizeof(kept_code))) &&
           is_wide(item_.gradient, static_cast<int>(bytes_of(item_.gradient_kind)));
  }

  template <int... I>
  __device__ void know_scales(std::integer_sequence<int, I...>) const {
    ((codec_at<I>::scaled ? is_global(item_.moments[I].scales) : void()), ...);
  }
  __device__ typename Column::code* visible() const {
    return static_cast<typename Column::code*>(item_.visible);
  }
  __device__ kept_code* kept() const { return static_cast<kept_code*>(item_.kept); }
  template <int I>
  __device__ code_at<I>* codes() const {
    return static_cast<code_at<I>*>(item_.moments[I].codes);
  }

  template <int I>
  __device__ void load_scales(std::int64_t first, scales& to) const {
    for (int g = 0; g < groups; ++g)
      to.of[I][g] =
          codec_at<I>::scaled ? item_.moments[I].scales[block_of<block>(place(first, g))] : 1.0f;
  }

  /// The usual case: everything finite, scales ordinary, no limit. False: nothing is written.
  template <int... I>
  __device__ bool ordinary(std::int64_t first, int number,
                           std::integer_sequence<int, I...> sequence) {
    values x;
    scales old;
    (load_scales<I>(first, old), ...);
    maxima most = {};
    bool odd = false, fades = false;
    for (int at = 0; at < unit; at += tile)
      odd |= update(first + at, old, x, most, fades, sequence);
    ((odd |= share<I>(old, most)), ...);
    if (__any_sync(warp::everyone, odd)) return false;
    fades = __any_sync(warp::everyone, fades);
    for (int at = 0; at < unit; at += tile) {
      if constexpr (unit > tile) update(first + at, old, x, most, fades, sequence);
      (write_moment<I>(first + at, x.s[I], most, fades), ...);
      write_parameter(first + at, x.p);
    }
    (write_scales<I>(first, number, most), ...);
    return true;
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
      (load_moment_codes<I>(place(first, r), old.of[I][r % groups], x.s[I][r]), ...);
#pragma unroll
      for (int j = 0; j < wide; ++j) {
        gradients.see(g[j]);
        least = fminf(least.v, fabsf(g[j].v));
        F s[arrays] = {x.s[I][r][j]...};
        apply(x.p[r][j], g[j], s);
        parameters.see(x.p[r][j]);
        ((x.s[I][r][j] = s[I], grow<I>(most.of[I][r % groups], s[I])), ...);
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
    for (int g = 0; g < groups; ++g) {
      auto m = bits(most.of[I][g]);
      if constexpr (codec_at<I>::scaled) {
        m = new_scale<I>(largest_of<layout<block>::sharing>(m));
        most.of[I][g] = from_bits<float>(m);
        odd |= !ordinary_scale(m) | vanishes<I>(old.of[I][g]);
      } else {
        odd |= m >= codec_at<I>::overflow;
      }
    }
    return odd;
  }

  /// Whether some code above zero might have the value zero under this scale.
  template <int I>
  __device__ static bool vanishes(float scale) {
    constexpr float least = 0x1p-100f;
    return range_at<I> == range::non_negative && scale != 0.0f && !(scale >= least);
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

  template <int I>
  __device__ void write_moment(std::int64_t first, F const (&s)[runs][wide], maxima const& most,
                               bool fades) const {
    using C = codec_at<I>;
    auto const fading = [&](int r, int j) {
      return fades && range_at<I> == range::any && gradient(place(first, r) + j) == F(0.0f);
    };
    four<code_at<I>> c[runs];
    code_tile<C, range_at<I>, rounding::moment_nearly, rounding::fading_moment>(
        s, most.of[I], fades && range_at<I> == range::any, fading, c);
    for (int r = 0; r < runs; ++r) c[r].store(codes<I>() + place(first, r));
  }
  /// Element i of the gradient, multiplied.
  __device__ F gradient(std::int64_t i) const {
    return product(load_one(item_.gradient, item_.gradient_kind, i), F(multiplier_));
  }

  template <int I>
  __device__ void write_scales(std::int64_t first, [[maybe_unused]] int number,
                               maxima const& most) {
    if constexpr (codec_at<I>::scaled && groups == 1) {
      if (warp::lane() == number) held_[I] = most.of[I][0], holds_ = true;
    } else if constexpr (codec_at<I>::scaled) {
      if (warp::lane() % layout<block>::sharing == 0)
        for (int g = 0; g < groups; ++g)
          item_.moments[I].scales[block_of<block>(place(first, g))] = most.of[I][g];
    }
  }
  /// The scales of units that are one block each lie side by side, and are written together.
  template <int... I>
  __device__ void write_held(std::int64_t start, std::integer_sequence<int, I...>) const {
    if (!holds_) return;
    [[maybe_unused]] auto const at = block_of<block>(start) + warp::lane();
    ((codec_at<I>::scaled ? void(item_.moments[I].scales[at] = held_[I]) : void()), ...);
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
    F const before[arrays] = {
        moment_value<codec_at<I>, range_at<I>>(U(codes<I>()[i]), F(old[I]))...};
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
  /// Any case: a block in part, elements to leave alone, extreme scales, unaligned memory. Computes
  /// every element twice, for the scale and for its code.
  template <int... I>
  __device__ unsigned careful(std::int64_t begin, std::integer_sequence<int, I...> sequence) const {
    auto const rest = item_.count - begin;
    int const n = rest < block ? static_cast<int>(rest) : block;
    float old[arrays] = {};
    ((old[I] = codec_at<I>::scaled ? item_.moments[I].scales[block_of<block>(begin)] : 1.0f), ...);
    [[maybe_unused]] std::uint32_t most[arrays] = {};
    unsigned left_alone = 0;
    bool moved = false;
#pragma unroll 1
    for (int e = warp::lane(); e < block; e += warp::lanes) {
      auto const x = careful_element(begin, e, n, old, sequence);
      ((most[I] = ops<float>::larger(most[I], bits(x.s[I]).v & 0x7fffffffu)), ...);
      moved |= x.inside & x.moves;
      left_alone += x.inside & !x.moves ? 1u : 0u;
    }
    ((most[I] = new_scale<I>(largest_of<warp::lanes>(most[I]))), ...);
    // A block in which nothing moves keeps its codes and scale as they are.
    if (!__any_sync(warp::everyone, moved)) return left_alone;
#pragma unroll 1
    for (int e = warp::lane(); e < block; e += warp::lanes) {
      auto const x = careful_element(begin, e, n, old, sequence);
      code_masks<F> masks;
      masks.fading = (x.moves ? x.g : F(1.0f)) == F(0.0f);
      ((store_careful<I>(begin + e, x, from_bits<float>(most[I]), masks)), ...);
      auto const code = parameter_codes(x.p, begin + e);
      if (x.inside & x.moves) {
        visible()[begin + e] = static_cast<typename Column::code>(code.visible.v);
        if constexpr (keeps) kept()[begin + e] = static_cast<kept_code>(code.kept.v);
      }
    }
    if (warp::lane() == 0) (store_scale<I>(begin, most[I]), ...);
    return left_alone;
  }
  template <int I>
  __device__ void store_careful(std::int64_t i, element const& x, float scale,
                                code_masks<F>& masks) const {
    U const c = coded<codec_at<I>, range_at<I>, rounding::fading_moment>(
        x.s[I], normalizer<F, true>(scale), masks);
    if (x.inside) codes<I>()[i] = static_cast<code_at<I>>(c.v);
  }
  template <int I>
  __device__ void store_scale(std::int64_t begin, std::uint32_t most) const {
    if constexpr (codec_at<I>::scaled)
      item_.moments[I].scales[block_of<block>(begin)] = from_bits<float>(most);
  }

  step_item<Rule> const item_;
  constants_of<Rule> const k_;
  float const multiplier_, limit_;
  bool const is_usual_;  // columns aligned, gradients without a limit
  float held_[arrays];   // the scale of the unit whose number is this thread's
  bool holds_ = false;
};

}  // namespace memfit::detail
