// One step of a rule on the host: a unit of every column at a time, read once and written once.
// Used by host::step; knows no rule, no codec and no parameter column by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "memfit/exec/host/block.hpp"
#include "memfit/exec/host/byte_table.hpp"

namespace memfit::detail {

/// Applies the step's constants to one value or bundle of lanes. A rule that takes plain floats
/// only is applied to one lane after the other.
template <class Rule, class F, int N>
inline void apply_rule(constants_of<Rule> const& k, F& p, F const& g, F (&s)[N]) {
  if constexpr (slot_count<Rule> == 0 && fits_value<Rule, F>) {
    k(p, g);
  } else if constexpr (fits_value<Rule, F>) {
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

/// Block sizes of a rule's slots.
template <class Rule, class Format, int... I>
constexpr int largest_block(std::integer_sequence<int, I...>) {
  return (std::max)({default_block, slot_storage<Rule, Format, I>::block...});
}
template <class Rule, class Format, int... I>
constexpr int smallest_block(std::integer_sequence<int, I...>) {
  return (std::min)({default_block, slot_storage<Rule, Format, I>::block...});
}

/// Elements of a tensor that are read, updated and written together: whole blocks of every moment.
template <class Rule, class Format>
inline constexpr int unit_size =
    largest_block<Rule, Format>(std::make_integer_sequence<int, slot_count<Rule>>());

/// Elements of a unit that lie within one block of every moment.
template <class Rule, class Format>
inline constexpr int run_size =
    smallest_block<Rule, Format>(std::make_integer_sequence<int, slot_count<Rule>>());

/// The columns of one unit, wherever they lie.
template <class Column, int Moments>
struct unit_columns {
  typename Column::code* visible;
  std::conditional_t<std::is_void_v<typename Column::kept>, std::uint16_t, typename Column::kept>*
      kept;
  void const* gradient;
  moment_ref moments[Moments];
  std::int64_t first;  // index in the tensor, which keys the noise
  int count;
};

template <class Rule, class Format, class Column>
class unit_step {
 public:
  static constexpr int slots = slot_count<Rule>;
  static constexpr int arrays = slots > 0 ? slots : 1;
  static constexpr int unit = unit_size<Rule, Format>;
  static constexpr int run_length = run_size<Rule, Format>;
  static constexpr int runs = unit / run_length;
  using item = step_item<Rule>;
  using columns = unit_columns<Column, arrays>;

  unit_step(item const& it, float multiplier, float limit)
      : item_(it), multiplier_(multiplier), limit_(limit) {}

  /// Steps one unit; returns how many elements were left alone because something was not finite.
  /// The unit's new codes may be written only by the next call, or by finish().
  template <class F>
  int run(columns const& c) {
    if (c.count == unit && ordinary_before(c, all_slots()) && stage_gradient<F>(c) &&
        (pending_ ? update<F, true>(c, all_slots()) : update<F, false>(c, all_slots())))
      return 0;
    int left_alone = 0;
    ops<F>::apart(careful_unit{*this, c, left_alone});
    return left_alone;
  }

  template <class F>
  void finish() {
    if (pending_) ops<F>::apart(pending_unit{*this});
  }

  columns at(std::int64_t first) const {
    columns c{};
    c.visible = static_cast<typename Column::code*>(item_.visible) + first;
    if constexpr (keeps) c.kept = static_cast<typename Column::kept*>(item_.kept) + first;
    c.gradient = static_cast<char const*>(item_.gradient) + first * bytes_of(item_.gradient_kind);
    c.first = first;
    c.count = static_cast<int>((std::min<std::int64_t>)(unit, item_.active() - first));
    set_moments(c, first, all_slots());
    return c;
  }

 private:
  static constexpr bool keeps = !std::is_void_v<typename Column::kept>;
  template <int I>
  using storage_at = slot_storage<Rule, Format, I>;
  template <int I>
  using codec_at = typename storage_at<I>::codec;
  template <int I>
  using code_at = typename storage_at<I>::code;
  template <int I>
  static constexpr int block_at = storage_at<I>::block;
  template <int I>
  static constexpr int blocks_at = unit / block_at<I>;
  static constexpr auto all_slots() { return std::make_integer_sequence<int, slots>(); }
  /// Whether the run that begins here begins a block of slot I.
  template <int I>
  static constexpr bool begins_block(int begin) {
    return block_at<I> == run_length || begin % block_at<I> == 0;
  }
  template <int I>
  static code_at<I>* codes_of(columns const& c) {
    return static_cast<code_at<I>*>(c.moments[I].codes);
  }

  template <int... I>
  void set_moments([[maybe_unused]] columns& c, [[maybe_unused]] std::int64_t first,
                   std::integer_sequence<int, I...>) const {
    ((c.moments[I] = {storage_at<I>::at(item_.moments[I].codes, first),
                      storage_at<I>::scale_at(item_.moments[I].scales, first / block_at<I>)}),
     ...);
  }

  template <int... I>
  static bool ordinary_before(columns const& c, std::integer_sequence<int, I...>) {
    return (ordinary_before<I>(c) && ...);
  }
  template <int I>
  static bool ordinary_before(columns const& c) {
    bool all = true;
    if constexpr (storage_at<I>::scaled)
      for (int b = 0; b < blocks_at<I>; ++b)
        all &= ordinary_scale(bits(storage_at<I>::load_scale(c.moments[I].scales, b)));
    return all;
  }

  template <class F, int I, bool Any>
  static F moment(columns const& c, F const& scale, int i) {
    return load_moment<storage_at<I>, Any>(codes_of<I>(c), i, scale);
  }
  /// The scale of element i.
  template <class F, int I>
  static F old_scale(columns const& c, int i) {
    return F(storage_at<I>::load_scale(c.moments[I].scales, i / block_at<I>));
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

  /// The gradients of a unit, multiplied, in the scratch of its result; whether all are finite, and
  /// whether some are zero.
  template <class F>
  bool stage_gradient(columns const& c) {
    F const multiplier(multiplier_);
    overflow_watch<F, infinity_bits> watch;
    auto zero = F(1.0f) == F(0.0f);
    float* const to = results_[turn_].gradient;
    for (int i = 0; i < unit; i += ops<F>::width) {
      F g = load_scalars<F>(c.gradient, item_.gradient_kind, i);
      if (multiplier_ != 1.0f) g = product(g, multiplier);
      watch.see(g);
      zero = zero | (g == F(0.0f));
      ops<F>::store(to + i, g);
    }
    fades_ = any<F>(zero);
    if (limits(limit_)) ops<F>::apart(limited_unit{to, limit_});
    return !watch.seen();
  }

  /// A unit's multiplied gradients under the gate's limit.
  struct limited_unit {
    float* gradient;
    float limit;
    template <class F>
    void operator()() const {
      for (int i = 0; i < unit; i += ops<F>::width)
        ops<F>::store(gradient + i, limited(ops<F>::load(gradient + i), limit));
    }
  };

  /// The usual case: everything finite, scales ordinary. Between the long divisions of this unit it
  /// writes the codes of the unit before, which is `Pending`. False: of this unit nothing is
  /// written, take careful().
  template <class F, bool Pending, int... I>
  bool update(columns const& c, std::integer_sequence<int, I...> sequence) {
    auto const k = item_.constants;
    result& now = results_[turn_];
    [[maybe_unused]] result const& before = results_[1 - turn_];
    auto const stride = bytes_of(item_.gradient_kind);
    (stage_moment<F, I>(c), ...);
    overflow_watch<F, Column::overflow> watch;
    [[maybe_unused]] uint_of<F> most[arrays] = {};
    for (int begin = 0; begin < unit; begin += run_length) {
      [[maybe_unused]] F const scale[arrays] = {old_scale<F, I>(c, begin)...};
      ((most[I] = begins_block<I>(begin) ? uint_of<F>(0u) : most[I]), ...);
      writers<F, false> write(*this, before, begin, sequence);
      for (int i = begin; i < begin + run_length; i += ops<F>::width) {
        prefetch(c, stride, i, sequence);
        F p = parameter<F>(c, i);
        F s[arrays] = {staged_moment<F, I>(c, scale[I], i)...};
        apply_rule<Rule>(k, p, ops<F>::load(now.gradient + i), s);
        ((most[I] = larger(most[I], slot_magnitude<I>(s[I]))), ...);
        watch.see(p);
        ops<F>::store(now.parameter + i, p);
        (ops<F>::store(now.moment[I] + i, s[I]), ...);
        if constexpr (Pending) {
          (write.template slot<I, rounding::moment_nearly>(before, i), ...);
          write_parameter<F>(before, i);
        }
      }
      (end_run<I>(now, begin, most[I]), ...);
      if constexpr (Pending)
        ((settle<F, I>(before, begin, write.masks[I]), store_scale<I>(before, begin)), ...);
    }
    pending_ = !watch.seen() && (ordinary_after<I>(now) && ...);
    if (!pending_) return false;
    now.where = c;
    turn_ = 1 - turn_;
    if (fades_) ops<F>::apart(pending_unit{*this});
    return true;
  }

  /// Moments of tabulated codecs are read from their table before the loop over the unit.
  template <class F, int I>
  void stage_moment(columns const& c) {
    using C = codec_at<I>;
    if constexpr (reads_table<F, C>) stage_values<F, C>(codes_of<I>(c), unit, staged_[I]);
  }
  template <class F, int I>
  F staged_moment(columns const& c, F const& scale, int i) const {
    if constexpr (reads_table<F, codec_at<I>>)
      return product(ops<F>::load(staged_[I] + i), scale);
    else
      return moment<F, I, false>(c, scale, i);
  }

  /// Asks for what the units after the next will read; `stride` bytes per gradient element.
  template <int... I>
  [[gnu::always_inline]] static void prefetch(columns const& c, std::int64_t stride, int i,
                                              std::integer_sequence<int, I...>) {
    constexpr int ahead = 1024;
    __builtin_prefetch(c.visible + i + ahead);
    if constexpr (keeps) __builtin_prefetch(c.kept + i + ahead);
    __builtin_prefetch(static_cast<char const*>(c.gradient) + (i + ahead) * stride);
    (prefetch_codes<storage_at<I>>(c.moments[I].codes, i), ...);
  }
  /// Codes of one byte move on by a cache line every fourth time only, but are asked for earlier.
  template <class Storage>
  [[gnu::always_inline]] static void prefetch_codes(void const* codes, int i) {
    constexpr int line = 64 * 8 / Storage::width;
    if (i % line == 0) __builtin_prefetch(Storage::at(codes, i + 1024 + line));
  }

  /// Magnitude of a new moment as a pattern. A negative value where there must be none is out of
  /// every range, and so handed to careful().
  template <int I, class F>
  static uint_of<F> slot_magnitude(F const& s) {
    if constexpr (storage_at<I>::values == range::non_negative)
      return bits(s);
    else
      return magnitude(s);
  }

  /// What an update has computed of a unit before its codes are written.
  struct result {
    columns where;
    std::uint32_t scales[arrays][runs];  // of the blocks of each slot
    alignas(64) float gradient[unit];
    alignas(64) float parameter[unit];
    alignas(64) float moment[arrays][unit];
  };

  /// Where a run ends a block of slot I, the block's largest magnitude gives its new scale.
  template <int I, class U>
  static void end_run(result& now, int begin, U const& most) {
    if (begins_block<I>(begin + run_length))
      now.scales[I][begin / block_at<I>] = storage_at<I>::scale_for(ops<U>::largest(most));
  }

  template <class F, bool Any, int I>
  static normalizer<F, Any> normalizer_at(result const& r, int i) {
    return normalizer<F, Any>(from_bits<float>(r.scales[I][i / block_at<I>]));
  }
  template <int I>
  noise_key key_at([[maybe_unused]] result const& r) const {
    if constexpr (storage_at<I>::at_random)
      return fold_high(slot_key(item_.key, I), r.where.first);
    else
      return {};
  }

  /// Codes of slot I from element i of a result on, all under the same scale.
  template <int I, rounding How, class F, bool Any>
  static void write_codes(result const& r, int i, normalizer<F, Any> const& normalize,
                          [[maybe_unused]] noise_key key, code_masks<F>& masks) {
    using to = storage_at<I>;
    if constexpr (takes_noise<to, How>)
      masks.noise = noise(key, ops<F>::iota(static_cast<std::uint32_t>(r.where.first) +
                                            static_cast<std::uint32_t>(i)));
    else if constexpr (How == rounding::fading_moment)
      masks.fading = ops<F>::load(r.gradient + i) == F(0.0f);
    store_codes<F, to, Any, How>(ops<F>::load(r.moment[I] + i), normalize, masks,
                                 codes_of<I>(r.where), i);
  }
  template <class F, bool Any, rounding How, int I>
  void write_codes(result const& r, int begin, int count) const {
    auto const normalize = normalizer_at<F, Any, I>(r, begin);
    auto const key = key_at<I>(r);
    code_masks<F> masks;
    for (int i = begin; i < begin + count; i += ops<F>::width)
      write_codes<I, How>(r, i, normalize, key, masks);
  }

  /// Writes codes of all slots in one run of a result.
  template <class F, bool Any>
  struct writers {
    template <int... I>
    writers(unit_step const& step, result const& r, [[maybe_unused]] int begin,
            std::integer_sequence<int, I...>)
        : normalize{normalizer_at<F, Any, I>(r, begin)...}, key{step.template key_at<I>(r)...} {}
    template <int I, rounding How>
    void slot(result const& r, int i) {
      write_codes<I, How>(r, i, normalize[I], key[I], masks[I]);
    }
    code_masks<F> masks[arrays];
    normalizer<F, Any> normalize[arrays];
    noise_key key[arrays];
  };

  /// Codes of one slot in one run of a result, all decided exactly.
  template <int I>
  struct exact_codes {
    unit_step const& step;
    result const& r;
    int begin;
    template <class F>
    void operator()() const {
      step.template write_codes<F, false, rounding::moment, I>(r, begin, run_length);
    }
  };
  template <class F, int I>
  void settle(result const& r, int begin, code_masks<F> const& masks) const {
    if constexpr (!storage_at<I>::at_random)
      if (any<F>(masks.unsure)) ops<F>::apart(exact_codes<I>{*this, r, begin});
  }

  template <class F>
  void write_parameter(result const& r, int i) const {
    store_parameter<F>(r.where, parameter_codes<F>(r.where, ops<F>::load(r.parameter + i), i), i);
  }

  /// Stores the new scale of the block of slot I that begins at this element.
  template <int I>
  static void store_scale(result const& r, int begin) {
    auto const b = begin / block_at<I>;
    if (begins_block<I>(begin) && begin < r.where.count)
      storage_at<I>::store_scale(r.where.moments[I].scales, b, r.scales[I][b]);
  }

  struct pending_unit {
    unit_step& step;
    template <class F>
    void operator()() const {
      step.template write_pending<F>(all_slots());
    }
  };
  template <class F, int... I>
  void write_pending(std::integer_sequence<int, I...> sequence) {
    result const& before = results_[1 - turn_];
    if (fades_)
      write_moments<F, rounding::fading_moment>(before, sequence);
    else
      write_moments<F, rounding::moment>(before, sequence);
    for (int i = 0; i < unit; i += ops<F>::width) write_parameter<F>(before, i);
    pending_ = false;
  }

  template <class F, rounding How, int... I>
  void write_moments(result const& r, std::integer_sequence<int, I...>) const {
    for (int begin = 0; begin < unit; begin += run_length)
      ((write_codes<F, false, How, I>(r, begin, run_length), store_scale<I>(r, begin)), ...);
  }

  template <int I>
  static bool ordinary_after(result const& r) {
    bool all = true;
    for (int b = 0; b < blocks_at<I>; ++b)
      if constexpr (storage_at<I>::scaled)
        all &= ordinary_scale(r.scales[I][b]);
      else
        all &= r.scales[I][b] < codec_at<I>::overflow;
    return all;
  }

  struct careful_unit {
    unit_step& step;
    columns const& c;
    int& left_alone;
    template <class F>
    void operator()() const {
      left_alone = step.template careful<F>(c);
    }
  };

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
    alignas(64) unsigned char scales[arrays][runs * sizeof(float)];
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
    inside.moments[I] = {copy.codes[I], copy.scales[I]};
    copy_slot<I>(c, inside.moments[I], c.moments[I]);
  }
  template <int I>
  static void copy_slot(columns const& c, moment_ref const& to, moment_ref const& from) {
    auto const n = static_cast<std::int64_t>(elements(c));
    std::memcpy(to.codes, from.codes, static_cast<std::size_t>(storage_at<I>::code_bytes(n)));
    if constexpr (storage_at<I>::scaled)
      std::memcpy(to.scales, from.scales, static_cast<std::size_t>(storage_at<I>::scale_bytes(n)));
  }

  template <int... I>
  void copy_out(columns const& c, columns const& inside, std::integer_sequence<int, I...>) const {
    auto const n = elements(c);
    std::memcpy(c.visible, inside.visible, n * sizeof *c.visible);
    if constexpr (keeps) std::memcpy(c.kept, inside.kept, n * sizeof *c.kept);
    (copy_slot<I>(c, c.moments[I], inside.moments[I]), ...);
  }

  template <class F, int... I>
  int update_each(columns const& c, std::integer_sequence<int, I...>) {
    using U = uint_of<F>;
    auto const k = item_.constants;
    F const multiplier(multiplier_);
    int left_alone = 0;
    result& now = results_[turn_];
    now.where = c;
    bool moved[runs] = {};
    for (int i = 0; i < unit; i += ops<F>::width) {
      auto const inside =
          ops<F>::iota(static_cast<std::uint32_t>(i)) < U(static_cast<unsigned>(c.count));
      F const g = product(load_scalars<F>(c.gradient, item_.gradient_kind, i), multiplier);
      auto moves = magnitude(g) < U(infinity_bits);
      F const old_p = parameter<F>(c, i);
      F const old_s[arrays] = {moment<F, I, true>(c, old_scale<F, I>(c, i), i)...};
      F p = old_p;
      F s[arrays] = {old_s[I]...};
      apply_rule<Rule>(k, p, limited(F(select(moves, g, F(0.0f))), limit_), s);
      ((moves = moves & (magnitude(s[I]) < U(moment_limit<codec_at<I>>))), ...);
      moves = moves & (magnitude(p) < U(Column::overflow));
      left_alone += ops<F>::count(inside & !moves);
      moved[i / run_length] |= any<F>(inside & moves);
      auto const fresh = parameter_codes<F>(c, p, i);
      parameter_code<U> const old = {ops<F>::load(c.visible + i), kept_code<F>(c, i)};
      store_parameter<F>(
          c, {select(moves, fresh.visible, old.visible), select(moves, fresh.kept, old.kept)}, i);
      ops<F>::store(now.gradient + i, F(select(moves, g, F(1.0f))));
      (ops<F>::store(now.moment[I] + i, F(select(inside, select(moves, s[I], old_s[I]), F(0.0f)))),
       ...);
    }
    (write_moved<F, I>(now, moved), ...);
    return left_alone;
  }
  /// Codes and scales of slot I, save in blocks in which nothing has moved: these stay as they are.
  template <class F, int I>
  void write_moved(result& now, bool const (&moved)[runs]) const {
    constexpr int block = block_at<I>, of_block = block / run_length;
    for (int b = 0; b < blocks_at<I>; ++b) {
      auto const* const first = moved + b * of_block;
      if (std::none_of(first, first + of_block, [](bool m) { return m; })) continue;
      now.scales[I][b] =
          storage_at<I>::scale_for(largest_magnitude<F>(now.moment[I] + b * block, block));
      write_codes<F, true, rounding::fading_moment, I>(now, b * block, block);
      store_scale<I>(now, b * block);
    }
  }
  template <class F>
  static uint_of<F> magnitude(F const& x) {
    return bits(x) & 0x7fffffffu;
  }
  template <class F>
  static uint_of<F> kept_code(columns const& c, int i) {
    if constexpr (keeps)
      return ops<F>::load(c.kept + i);
    else
      return uint_of<F>(0u);
  }

  item const& item_;
  float multiplier_, limit_;
  alignas(64) float staged_[arrays][unit];
  result results_[2];
  int turn_ = 0;
  bool pending_ = false;  // the other result is computed but not written
  bool fades_ = false;    // the latest staged gradient has zeros
};

/// Elements that one task covers: enough to hide the hand-out, little enough to share evenly.
template <class Rule, class Format>
inline constexpr std::int64_t task_size = std::int64_t{512} * unit_size<Rule, Format>;

/// A run of units of one tensor, as a body for run_on.
template <class Rule, class Format, class Column>
struct step_body {
  step_item<Rule> const& item;
  std::int64_t first, last;
  float multiplier, limit;
  std::uint64_t* left_alone;

  template <class F>
  void operator()() const {
    unit_step<Rule, Format, Column> step(item, multiplier, limit);
    std::uint64_t alone = 0;
    for (auto i = first; i < last; i += unit_size<Rule, Format>)
      alone += static_cast<std::uint64_t>(step.template run<F>(step.at(i)));
    step.template finish<F>();
    if (alone != 0 && left_alone != nullptr)
      __atomic_fetch_add(left_alone, alone, __ATOMIC_RELAXED);
  }
};

}  // namespace memfit::detail
