// What the stages of a transformer keep, and about how long they take.
// Used by the model that is made of its shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/checkpoint/plan/rounded.hpp"
#include "memfit/fit/divide.hpp"
#include "memfit/fit/model.hpp"
#include "memfit/fit/transformer/shape.hpp"

namespace memfit::fit::detail {

inline void require_pass(transformer_shape const& s, pass const& p) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  require_between(s, "batch", p.batch, 1, most);
  require_between(s, "seq", p.seq, 1, s.family == family::llama ? most : s.context);
  require_between(s, "element_bytes", p.element_bytes, 1, 8);
  require_between(s, "tensor_ranks", p.tensor_ranks, 1, s.heads);
}

/// Work of a stage: floating-point operations of products, and bytes that pass by.
struct work {
  double flops = 0, bytes = 0;

  work operator+(work const& o) const { return {flops + o.flops, bytes + o.bytes}; }
  work operator*(double times) const { return {flops * times, bytes * times}; }

  std::int64_t nanoseconds(rates const& speed) const {
    double const t = 1e9 * (flops / speed.flops + bytes / speed.bytes);
    return t < 0x1p62 ? (std::max)(std::int64_t{1}, static_cast<std::int64_t>(t))
                      : std::int64_t{1} << 62;
  }
};

/// The tensors of a pass on one tensor-parallel rank, in bytes, each a multiple of the alignment.
struct activation_bytes {
  activation_bytes(transformer_shape const& s, pass const& p) : of(s), on(p) {
    auto const ranks = p.tensor_ranks;
    rows = product(s, {p.batch, p.seq});
    attended_channels = share(s.heads, ranks) * (s.channels / s.heads);
    packed_channels = attended_channels + 2 * share(s.kv_channels(), ranks);
    wide_channels = share(s.wide_channels(), ranks);
    vocabulary = share(s.vocabulary, ranks);
    narrow = bytes({rows, s.channels});
    packed = bytes({rows, packed_channels});
    attended = bytes({rows, attended_channels});
    squares = bytes({p.batch, share(s.heads, ranks), p.seq, p.seq});
    bent = bytes({rows, wide_channels});
    raised = s.family == family::llama ? 2 * bent : bent;
    logits = bytes({rows, vocabulary});
    pooled = bytes({p.batch, s.channels});
    row_numbers = checkpoint::rounded(product(s, {rows, (std::max)(p.element_bytes, wide_scalar)}));
    norm_moments = s.family == family::llama ? row_numbers : 2 * row_numbers;
  }

  static constexpr std::int64_t wide_scalar = 4;  // of statistics and losses, at least

  transformer_shape const& of;
  pass const& on;
  std::int64_t rows, attended_channels, packed_channels, wide_channels, vocabulary;
  std::int64_t narrow, packed, attended, squares, bent, raised, logits, pooled;
  std::int64_t row_numbers, norm_moments;

 private:
  std::int64_t bytes(std::initializer_list<std::int64_t> extents) const {
    return checkpoint::rounded(product(of, {product(of, extents), on.element_bytes}));
  }
};

/// A block as a stage, with the variants that keep everything; without what is computed again
/// element by element; and without the attention's probabilities besides.
class block_stage {
 public:
  block_stage(transformer_shape const& s, activation_bytes const& a, rates const& speed)
      : a_(a), speed_(speed), after_(s.family == family::bert) {
    double const rows = static_cast<double>(a.rows), channels = static_cast<double>(s.channels);
    auto const linear = [&](double inputs, double outputs) {
      return work{2 * rows * inputs * outputs,
                  inputs * outputs * static_cast<double>(a.on.element_bytes)};
    };
    auto const wide = static_cast<double>(a.wide_channels);
    down_ = linear(wide, channels);
    square_ = {2 * rows * static_cast<double>(a.on.seq * a.attended_channels),
               3 * static_cast<double>(a.squares)};
    forward_ = linear(channels, static_cast<double>(a.packed_channels + a.attended_channels)) +
               square_ * 2 + linear(channels, wide) * (s.family == family::llama ? 2 : 1) + down_ +
               work{0, 2 * static_cast<double>(kept(0) + a.narrow)};
  }

  checkpoint::stage operator()() const {
    checkpoint::stage made{.output = a_.narrow,
                           .gradient = a_.narrow,
                           .forward = forward_.nanoseconds(speed_),
                           .scratch = pass_scratch(),
                           .variants = {}};
    for (int dropped = 0; dropped < 3; ++dropped) made.variants.push_back(variant(dropped));
    return made;
  }

 private:
  // Variants by what they drop: 0 nothing, 1 elementwise results, 2 probabilities, too.
  checkpoint::variant variant(int dropped) const {
    auto const without_output = work{forward_.flops - down_.flops, forward_.bytes - down_.bytes};
    return {.saved = kept(dropped),
            .forward = forward_.nanoseconds(speed_),
            .replay = without_output.nanoseconds(speed_),
            .backward = (forward_ * 2 + again(dropped)).nanoseconds(speed_),
            .forward_scratch = forward_scratch(dropped),
            .backward_scratch = backward_scratch(dropped)};
  }

  std::int64_t moments() const { return 2 * a_.norm_moments; }
  std::int64_t elementwise() const { return (after_ ? 1 : 2) * a_.narrow + a_.bent; }
  std::int64_t kept(int dropped) const {
    auto const products = a_.packed + a_.attended + (after_ ? 2 : 1) * a_.narrow + a_.raised;
    return moments() + products + (dropped < 2 ? a_.squares : 0) +
           (dropped < 1 ? elementwise() : 0);
  }
  work again(int dropped) const {
    auto sum = work{0, dropped > 0 ? 2 * static_cast<double>(elementwise()) : 0.0};
    return dropped > 1 ? sum + square_ : sum;
  }

  /// Of a forward that keeps nothing. The result of a norm after a layer is needed until the next.
  std::int64_t pass_scratch() const {
    auto const normed = after_ ? 0 : a_.narrow;
    return moments() + (std::max)(a_.attended + a_.packed + (std::max)(normed, a_.squares),
                                  a_.raised + a_.narrow);
  }
  std::int64_t forward_scratch(int dropped) const {
    if (dropped == 0) return 0;
    auto const most = after_ ? a_.narrow + a_.bent : (std::max)(a_.narrow, a_.bent);
    return dropped == 1 ? most : (std::max)(most, a_.squares);
  }
  std::int64_t backward_scratch(int dropped) const {
    auto const normed = dropped > 0 ? a_.narrow : 0, bent = dropped > 0 ? a_.bent : 0,
               squares = dropped > 1 ? 2 * a_.squares : a_.squares;
    auto const wide_half = a_.raised + (std::max)(bent, a_.narrow + normed);
    auto const attention_half = a_.packed + a_.narrow + (std::max)(squares, normed);
    return (std::max)(wide_half, attention_half) + (after_ ? a_.narrow : 0);
  }

  activation_bytes const& a_;
  rates const& speed_;
  bool after_;  // norms come after the layers
  work down_, square_, forward_;
};

inline checkpoint::stage embedding_stage(transformer_shape const& s, activation_bytes const& a,
                                         rates const& speed) {
  bool const normed = s.family == family::bert;
  auto const time = work{0, 2 * static_cast<double>(a.narrow)}.nanoseconds(speed);
  return {.output = a.narrow,
          .gradient = a.narrow,
          .forward = time,
          .scratch = normed ? a.norm_moments + a.narrow : 0,
          .variants = {{.saved = normed ? a.norm_moments + a.narrow : 0,
                        .forward = time,
                        .replay = 0,
                        .backward = time,
                        .backward_scratch = normed ? a.narrow : 0}}};
}

/// Saves what the loss needs, as it is run but once; its input is the last activation.
inline checkpoint::stage head_stage(transformer_shape const& s, activation_bytes const& a,
                                    rates const& speed) {
  auto const channels = static_cast<double>(s.channels);
  bool const pools = s.family == family::bert;
  double const outputs = pools ? channels : static_cast<double>(a.vocabulary);
  double const rows = static_cast<double>(pools ? a.on.batch : a.rows);
  auto const saved = pools ? a.pooled : a.norm_moments + a.narrow + a.logits + a.row_numbers;
  work const once{2 * rows * channels * outputs, 2 * static_cast<double>(saved)};
  auto const time = once.nanoseconds(speed);
  return {.output = 0,
          .gradient = 0,
          .forward = time,
          .scratch = saved,
          .variants = {{.saved = saved,
                        .forward = time,
                        .replay = time,
                        .backward = (once * 2).nanoseconds(speed),
                        .backward_scratch = pools ? a.pooled : a.narrow}}};
}

inline checkpoint::chain chain_of(transformer_shape const& s, pass const& p, rates const& speed) {
  require_pass(s, p);
  activation_bytes const a(s, p);
  checkpoint::chain all{embedding_stage(s, a, speed)};
  all.insert(all.end(), static_cast<std::size_t>(s.layers), block_stage(s, a, speed)());
  all.push_back(head_stage(s, a, speed));
  return all;
}

}  // namespace memfit::fit::detail
