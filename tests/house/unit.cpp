// One translation unit of one_definition.py: uses what users use, and answers with a digest of
// every bit it computed. MEMFIT_UNIT is the name of its only external function, another one for
// each compiler and set of flags.
#include <memfit/memfit.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

// FNV-1a over bytes.
struct digest {
  std::uint64_t value = 14695981039346656037u;

  template <class E>
  void add(std::vector<E> const& items) {
    for (std::byte byte : std::as_bytes(std::span{items})) {
      value = (value ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
    }
  }
};

// Values of many magnitudes, some zero, exact in any floating-point mode.
template <class E>
std::vector<E> values(std::size_t count, std::uint32_t seed) {
  std::vector<E> result;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    auto const whole = static_cast<float>(static_cast<std::int32_t>(seed >> 20) - 2048);
    auto const scale = static_cast<float>(1u << ((seed >> 8) % 24u));
    result.push_back(static_cast<E>(whole / scale));
  }
  return result;
}

template <class Format, memfit::range R>
void add_quantized(digest& all, std::size_t n) {
  auto const in = values<float>(n, 7);
  using storage = memfit::storage<Format, R>;
  auto const count = static_cast<std::int64_t>(n);
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(storage::code_bytes(count)));
  std::vector<typename storage::scale> scales(
      static_cast<std::size_t>(memfit::block_count<Format>(count)));
  std::vector<float> out(n);
  memfit::host const exec{2};
  memfit::quantize<Format, R>(exec, in, codes, scales);
  memfit::dequantize<Format, R>(exec, codes, scales, out);
  all.add(codes);
  all.add(scales);
  all.add(out);
}

template <class Rule, class Format, class Param, class E>
void add_trained(digest& all, Rule rule) {
  std::vector<std::vector<E>> params{values<E>(5003, 1), values<E>(300, 2)};
  memfit::optimizer<Rule, Format, Param> opt{memfit::host{2}, rule, params};
  for (std::uint32_t step = 0; step < 3; ++step) {
    opt.step(std::vector<std::vector<float>>{values<float>(5003, 10 + step),
                                             values<float>(300, 20 + step)});
  }
  for (auto const& p : params) all.add(p);
  for (int slot = 0; slot < static_cast<int>(Rule::slots.size()); ++slot)
    all.add(opt.moment_sync(0, slot));
}

// The constants of rules that warm up, which take roots, powers, logarithms and exponentials.
void add_constants(digest& all) {
  for (std::int64_t step = 1; step < 2000; step += step < 10 ? 1 : 97) {
    auto const n = memfit::nadam{.momentum_decay = 0.02}.at(step);
    auto const r = memfit::radam{.beta2 = 0.99}.at(step);
    auto const m = memfit::ademamix{.alpha_warmup = 900, .beta3_warmup = 1700}.at(step);
    auto const x = static_cast<double>(step) / 2048;
    auto const l = memfit::lars{.weight_decay = 0.3}.at(step).with({1 + x, 0.7 * x});
    all.add(std::vector{n.from_moment, n.from_gradient, r.step_size, r.eps, m.fresh3, m.alpha,
                        l.ratio});
    all.add(std::vector{memfit::logarithm(x), memfit::exponential(-x), memfit::power(x, step)});
  }
}

// A window of two micro-batches: summed in Param, scaled, clipped, stepped with, and cast to fp16.
template <class Param>
void add_window(digest& all) {
  memfit::host const exec{2};
  std::vector<std::vector<float>> params{values<float>(5003, 1), values<float>(300, 2)};
  memfit::optimizer<memfit::adamw, memfit::float8> opt{exec, {.lr = 1e-2}, params};
  memfit::gradient_accumulator<Param> sums{exec, params, {.seed = 3}};
  memfit::loss_scaler scaler{exec};
  for (std::uint32_t step = 0; step < 3; ++step) {
    sums.add(std::vector<std::vector<float>>{values<float>(5003, 10 + step), values<float>(300, 4)},
             3 + step);
    sums.add_sums(std::vector<std::vector<memfit::bf16>>{values<memfit::bf16>(5003, 30 + step),
                                                         values<memfit::bf16>(300, 5)},
                  7);
    auto g = scaler.unscale(sums);
    g = memfit::clip_norm(sums, g, 1e-2);
    g = memfit::clip_percentile(sums, g, 50);
    g = memfit::clip_value(g, 1e-3f);
    opt.step(sums, g);
    scaler.update(g);
  }
  std::vector<memfit::fp16> nearest(5003), random(5003);
  memfit::cast(exec, params[0], nearest);
  memfit::cast_stochastic(exec, params[0], random, 9);
  for (auto const& p : params) all.add(p);
  all.add(nearest);
  all.add(random);
}

}  // namespace

std::uint64_t MEMFIT_UNIT();

std::uint64_t MEMFIT_UNIT() {
  using namespace memfit;
  digest all;
  for (std::size_t n : {0u, 1u, 255u, 1031u}) {
    add_quantized<dynamic8, range::any>(all, n);
    add_quantized<float8, range::non_negative>(all, n);
    add_quantized<linear8, range::any>(all, n);
    add_quantized<companded8, range::any>(all, n);
    add_quantized<packed4, range::any>(all, n);
    add_quantized<root8, range::non_negative>(all, n);
  }
  add_trained<adamw, float8, fp32, float>(all, {.lr = 1e-2, .eps = 1e-6, .weight_decay = 0.1});
  add_trained<momentum, dynamic8, stochastic<corrected<bf16>>, bf16>(
      all, {.momentum = 0.8, .nesterov = true});
  add_trained<adamw, per_slot<root8, packed4>, fp32, float>(all, {.lr = 1e-2});
  add_trained<lamb, float8, fp32, float>(all, {.lr = 1e-2, .weight_decay = 0.1});
  add_constants(all);
  add_window<fp32>(all);
  add_window<stochastic<bf16>>(all);
  add_window<split<bf16>>(all);
  return all.value;
}
