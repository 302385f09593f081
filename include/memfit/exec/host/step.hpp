// One step of a rule on the host: a unit of every column at a time, read once and written once.
// Used by host::step; knows no rule, no codec and no parameter column by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "memfit/exec/host/block.hpp"

namespace memfit::detail {

/// Applies the step's constants to one value or bundle of lanes. A rule that takes plain floats
/// only is applied to one lane after the other.
template <class Rule, class F, int N>
inline void apply_rule(constants_of<Rule> const& k, F& p, F const& g, F (&s)[N]) {
  if constexpr (slot_count<Rule> == 0 && rule_accepts<Rule, F>()) {
    k(p, g);
  } else if constexpr (rule_accepts<Rule, F>()) {
    k(p, g, s);
  } else {
    constexpr int width = ops<F>::width;
    float ps[width], gs[width], ss[N][width];
    ops<F>::store(ps, p);
    ops<F>::store(gs, g);
    for (int j = 0; j < N; ++j) ops<F>::store(ss[j], s[j]);
    for (int i = 0; i < width; ++i) {
      float lane[N];
      for (int j = 0; j < N; ++j) lane[j] = ss[j][i];
      apply_rule<Rule, float, N>(k, ps[i], gs[i], lane);
      for (int j = 0; j < N; ++j) ss[j][i] = lane[j];
    }
    p = ops<F>::load(ps);
    for (int j = 0; j < N; ++j) s[j] = ops<F>::load(ss[j]);
  }
}

/// Elements of a tensor that are read, updated and written together: whole blocks of every moment.
template <class Format>
inline constexpr int unit_size = std::max(format_traits<Format, range::any>::block, default_block);

/// The columns of one unit, wherever they lie.
template <class Column>
struct unit_columns {
  typename Column::code* visible;
  std::conditional_t<std::is_void_v<typename Column::kept>, std::uint16_t, typename Column::kept>*
      kept;
  void const* gradient;
  moment_ref moments[4];
  std::int64_t first;  // index in the tensor, which keys the noise
  int count;
};

template <class Rule, class Format, class Column>
class unit_step {
 public:
  static constexpr int slots = slot_count<Rule>;
  static constexpr int arrays = slots > 0 ? slots : 1;
  static constexpr int unit = unit_size<Format>;
  static constexpr int block = format_traits<Format, range::any>::block;
  static constexpr int blocks = unit / block;
  using item = step_item<Rule>;
  using columns = unit_columns<Column>;

  unit_step(item const& it, float multiplier) : item_(it), multiplier_(multiplier) {}

  /// Steps one unit; returns how many elements were left alone because something was not finite.
  template <class F>
  int run(columns const& c) {
    if (c.count == unit && ordinary_before(c) && update<F>(c, all_slots())) return 0;
    return careful<F>(c);
  }

  columns at(std::int64_t first) const {
    columns c{};
    c.visible = static_cast<typename Column::code*>(item_.visible) + first;
    if constexpr (keeps) c.kept = static_cast<typename Column::kept*>(item_.kept) + first;
    c.gradient = static_cast<char const*>(item_.gradient) + first * bytes_of(item_.gradient_kind);
    c.first = first;
    c.count = static_cast<int>(std::min<std::int64_t>(unit, item_.count - first));
    set_moments(c, first, all_slots());
    return c;
  }

 private:
  static constexpr bool keeps = !std::is_void_v<typename Column::kept>;
  template <int I>
  using codec_at = slot_codec<Rule, Format, I>;
  template <int I>
  static constexpr range range_at = Rule::slots[I].range;
  static constexpr auto all_slots() { return std::make_integer_sequence<int, slots>(); }

  template <int... I>
  void set_moments(columns& c, std::int64_t first, std::integer_sequence<int, I...>) const {
    ((c.moments[I] = {static_cast<typename codec_at<I>::code*>(item_.moments[I].codes) + first,
                      codec_at<I>::scaled ? item_.moments[I].scales + first / block : nullptr}),
     ...);
  }

  static bool ordinary_before(columns const& c) {
    bool all = true;
    for (int j = 0; j < slots; ++j)
      for (int b = 0; b < blocks && c.moments[j].scales != nullptr; ++b)
        all &= ordinary_scale(bits(c.moments[j].scales[b]));
    return all;
  }

  template <class F, int I, bool Any>
  static F moment(columns const& c, F const& scale, int i) {
    using C = codec_at<I>;
    return load_moment<C, range_at<I>, Any>(
        static_cast<typename C::code const*>(c.moments[I].codes) + i, scale);
  }
  template <class F, int I>
  static F old_scale(columns const& c, int b) {
    return codec_at<I>::scaled ? F(c.moments[I].scales[b]) : F(1.0f);
  }

  template <class F>
  static F parameter(columns const& c, int i) {
    auto const visible = ops<F>::load(c.visible + i);
    if constexpr (keeps)
      return Column::decode(visible, ops<F>::load(c.kept + i));
    else
      return Column::decode(visible, visible);
  }
  template <class F>
  parameter_code<uint_of<F>> parameter_codes(columns const& c, F const& p, int i) const {
    if constexpr (Column::takes_noise) {
      auto const index = static_cast<std::uint32_t>(c.first) + static_cast<std::uint32_t>(i);
      return Column::encode(p, noise(fold_high(item_.key, c.first), ops<F>::iota(index)));
    } else {
      return Column::encode(p, uint_of<F>(0u));
    }
  }
  template <class F>
  static void store_parameter(columns const& c, parameter_code<uint_of<F>> const& code, int i) {
    ops<F>::store(c.visible + i, code.visible);
    if constexpr (keeps) ops<F>::store(c.kept + i, code.kept);
  }

  /// The gradients of a unit, multiplied, in scratch; returns whether all are finite.
  template <class F>
  bool stage_gradient(columns const& c) {
    F const multiplier(multiplier_);
    F trace(0.0f);
    for (int i = 0; i < unit; i += ops<F>::width) {
      F const g = load_scalars<F>(c.gradient, item_.gradient_kind, i) * multiplier;
      trace = fma(g, 0.0f, trace);
      ops<F>::store(gradient_ + i, g);
    }
    return !any<F>(!(trace == F(0.0f)));
  }

  /// The usual case: everything finite, scales ordinary. False: nothing written, take careful().
  template <class F, int... I>
  bool update(columns const& c, std::integer_sequence<int, I...> sequence) {
    if (!stage_gradient<F>(c)) return false;
    auto const k = item_.constants;
    for (int b = 0; b < blocks; ++b) {
      [[maybe_unused]] F const scale[arrays] = {old_scale<F, I>(c, b)...};
      [[maybe_unused]] uint_of<F> most[arrays] = {((void)I, uint_of<F>(0u))...};
      for (int i = b * block; i < (b + 1) * block; i += ops<F>::width) {
        F p = parameter<F>(c, i);
        F s[arrays] = {moment<F, I, false>(c, scale[I], i)...};
        apply_rule<Rule>(k, p, ops<F>::load(gradient_ + i), s);
        ((most[I] = max(most[I], bits(s[I]) & 0x7fffffffu)), ...);
        ops<F>::store(parameter_ + i, p);
        (ops<F>::store(moment_[I] + i, s[I]), ...);
      }
      ((most_[I][b] = ops<F>::largest(most[I])), ...);
    }
    if (!(ordinary_after<I>() && ...)) return false;
    write<F, false>(c, sequence);
    for (int i = 0; i < unit; i += ops<F>::width)
      store_parameter<F>(c, parameter_codes<F>(c, ops<F>::load(parameter_ + i), i), i);
    return true;
  }

  template <int I>
  bool ordinary_after() const {
    bool all = true;
    for (int b = 0; b < blocks; ++b)
      all &= codec_at<I>::scaled ? ordinary_scale(most_[I][b]) : most_[I][b] < infinity_bits;
    return all;
  }

  /// Writes the moments in scratch under the scales in most_.
  template <class F, bool Any, int... I>
  void write(columns const& c, std::integer_sequence<int, I...>) {
    (write_slot<F, Any, I>(c), ...);
  }
  template <class F, bool Any, int I>
  void write_slot(columns const& c) {
    using C = codec_at<I>;
    for (int b = 0; b < blocks; ++b) {
      float const scale = from_bits<float>(most_[I][b]);
      store_moments<F, C, range_at<I>, Any, true>(
          moment_[I] + b * block, block, scale,
          static_cast<typename C::code*>(c.moments[I].codes) + b * block);
      if constexpr (C::scaled)
        if (b * block < c.count) c.moments[I].scales[b] = scale;
    }
  }

  /// Any case: partial units, elements to leave alone, extreme scales. Works on a padded copy.
  template <class F>
  int careful(columns const& c) {
    padded copy = {};
    columns const inside = copy_in(c, copy, all_slots());
    int const left_alone = update_each<F>(inside, all_slots());
    copy_out(c, inside, all_slots());
    return left_alone;
  }

  struct padded {
    alignas(64) unsigned char visible[unit * sizeof(typename Column::code)];
    alignas(64) unsigned char kept[unit * sizeof(std::uint32_t)];
    alignas(64) unsigned char gradient[unit * sizeof(float)];
    alignas(64) unsigned char codes[arrays][unit * sizeof(std::uint32_t)];
    float scales[arrays][blocks];
  };

  static std::size_t elements(columns const& c) {
    return static_cast<std::size_t>(std::clamp(c.count, 0, unit));
  }

  template <int... I>
  columns copy_in(columns const& c, padded& copy, std::integer_sequence<int, I...>) const {
    columns inside = c;
    auto const n = elements(c);
    inside.visible = reinterpret_cast<typename Column::code*>(copy.visible);
    std::memcpy(copy.visible, c.visible, n * sizeof *c.visible);
    if constexpr (keeps) {
      inside.kept = reinterpret_cast<typename Column::kept*>(copy.kept);
      std::memcpy(copy.kept, c.kept, n * sizeof *c.kept);
    }
    inside.gradient = copy.gradient;
    std::memcpy(copy.gradient, c.gradient,
                n * static_cast<std::size_t>(bytes_of(item_.gradient_kind)));
    (copy_slot_in<I>(c, inside, copy), ...);
    return inside;
  }
  template <int I>
  static void copy_slot_in(columns const& c, columns& inside, padded& copy) {
    using C = codec_at<I>;
    inside.moments[I] = {copy.codes[I], C::scaled ? copy.scales[I] : nullptr};
    std::memcpy(copy.codes[I], c.moments[I].codes, elements(c) * sizeof(typename C::code));
    for (int b = 0; C::scaled && b * block < c.count; ++b)
      copy.scales[I][b] = c.moments[I].scales[b];
  }

  template <int... I>
  void copy_out(columns const& c, columns const& inside, std::integer_sequence<int, I...>) const {
    auto const n = elements(c);
    std::memcpy(c.visible, inside.visible, n * sizeof *c.visible);
    if constexpr (keeps) std::memcpy(c.kept, inside.kept, n * sizeof *c.kept);
    (copy_slot_out<I>(c, inside), ...);
  }
  template <int I>
  static void copy_slot_out(columns const& c, columns const& inside) {
    using C = codec_at<I>;
    std::memcpy(c.moments[I].codes, inside.moments[I].codes,
                elements(c) * sizeof(typename C::code));
    for (int b = 0; C::scaled && b * block < c.count; ++b)
      c.moments[I].scales[b] = inside.moments[I].scales[b];
  }

  template <class F, int... I>
  int update_each(columns const& c, std::integer_sequence<int, I...> sequence) {
    using U = uint_of<F>;
    auto const k = item_.constants;
    F const multiplier(multiplier_);
    int left_alone = 0;
    for (int i = 0; i < unit; i += ops<F>::width) {
      [[maybe_unused]] int const b = i / block;
      auto const inside =
          ops<F>::iota(static_cast<std::uint32_t>(i)) < U(static_cast<unsigned>(c.count));
      F const g = load_scalars<F>(c.gradient, item_.gradient_kind, i) * multiplier;
      auto moves = is_finite(g);
      F const old_p = parameter<F>(c, i);
      F const old_s[arrays] = {moment<F, I, true>(c, old_scale<F, I>(c, b), i)...};
      F p = old_p;
      F s[arrays] = {old_s[I]...};
      apply_rule<Rule>(k, p, F(select(moves, g, F(0.0f))), s);
      ((moves = moves & is_finite(s[I])), ...);
      left_alone += ops<F>::count(inside & !moves);
      auto const fresh = parameter_codes<F>(c, p, i);
      parameter_code<U> const old = {ops<F>::load(c.visible + i), kept_code<F>(c, i)};
      store_parameter<F>(
          c, {select(moves, fresh.visible, old.visible), select(moves, fresh.kept, old.kept)}, i);
      (ops<F>::store(moment_[I] + i, F(select(inside, select(moves, s[I], old_s[I]), F(0.0f)))),
       ...);
    }
    for (int b = 0; b < blocks; ++b)
      ((most_[I][b] = largest_magnitude<F>(moment_[I] + b * block, block)), ...);
    write<F, true>(c, sequence);
    return left_alone;
  }
  template <class F>
  static auto is_finite(F const& x) {
    return (bits(x) & 0x7fffffffu) < uint_of<F>(infinity_bits);
  }
  template <class F>
  static uint_of<F> kept_code(columns const& c, int i) {
    if constexpr (keeps)
      return ops<F>::load(c.kept + i);
    else
      return uint_of<F>(0u);
  }

  item const& item_;
  float multiplier_;
  alignas(64) float gradient_[unit];
  alignas(64) float parameter_[unit];
  alignas(64) float moment_[arrays][unit];
  std::uint32_t most_[arrays][blocks];
};

/// Elements that one task covers: enough to hide the hand-out, little enough to share evenly.
template <class Format>
inline constexpr std::int64_t task_size = std::int64_t{512} * unit_size<Format>;

/// A run of units of one tensor, as a body for run_on.
template <class Rule, class Format, class Column>
struct step_body {
  step_item<Rule> const& item;
  std::int64_t first, last;
  float multiplier;
  std::uint64_t* left_alone;

  template <class F>
  void operator()() const {
    unit_step<Rule, Format, Column> step(item, multiplier);
    std::uint64_t alone = 0;
    for (auto i = first; i < last; i += unit_size<Format>)
      alone += static_cast<std::uint64_t>(step.template run<F>(step.at(i)));
    if (alone != 0 && left_alone != nullptr)
      __atomic_fetch_add(left_alone, alone, __ATOMIC_RELAXED);
  }
};

}  // namespace memfit::detail
