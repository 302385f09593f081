// A window on memfit::cuda: sums, loss scale, clipping and step have the host's bits, wait for
// nothing, and can be captured as one graph.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "cuda/counted.hpp"
#include "cuda/tensors.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/memfit.cuh"
#include "support/guarded.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::gradient_accumulator, memfit::tensor_ref;
using test::tensors;

std::vector<std::int64_t> const counts{0, 1, 3, 127, 1024, 1025, 5000};

template <class E>
std::vector<E> as(std::vector<float> const& values) {
  std::vector<E> out;
  for (float x : values) out.push_back(static_cast<E>(x));
  return out;
}

/// Gradients of one element type on both sides, `offset` elements behind an aligned address.
template <class E>
struct gradients {
  std::vector<std::vector<E>> host;
  std::vector<test::on_device<E>> device;
  gradients(test::kind kind, std::uint64_t seed, std::int64_t offset) {
    for (auto n : counts) {
      host.push_back(as<E>(test::make_input(kind, n, seed++)));
      device.emplace_back(host.back(), offset);
    }
  }
  auto there() const {
    std::vector<tensor_ref<E>> all;
    for (auto const& t : device) all.push_back({t.data(), t.count()});
    return all;
  }
  void expect_same() const {
    for (std::size_t i = 0; i < host.size(); ++i) {
      EXPECT_EQ(test::bytes_of(device[i].get()), test::bytes_of(host[i]));
      EXPECT_TRUE(device[i].intact());
    }
  }
};

template <class Column>
void expect_same_sums(gradient_accumulator<Column> const& host,
                      gradient_accumulator<Column> const& device) {
  using element = std::remove_const_t<std::remove_reference_t<decltype(*host.begin()->data)>>;
  auto there = device.begin();
  for (auto const& here : host) {
    std::vector<element> got(static_cast<std::size_t>(here.count));
    memfit::cuda{}.copy_to_host(got.data(), there->data,
                                here.count * static_cast<std::int64_t>(sizeof(element)));
    EXPECT_EQ(test::bytes_of(got),
              test::bytes_of(std::vector<element>(here.data, here.data + here.count)));
    ++there;
  }
}

template <class Column>
void sums_have_the_bits_of_the_host() {
  for (std::int64_t offset : {0, 1}) {
    gradients<float> a(test::kind::normal, 1, offset);
    gradients<memfit::bf16> b(test::kind::lognormal, 20, offset);
    gradients<memfit::fp16> c(test::kind::sparse, 40, offset);
    gradient_accumulator<Column> host(memfit::host{2}, a.host, {.seed = 5});
    gradient_accumulator<Column> device(memfit::cuda{}, a.there(), {.seed = 5});
    auto const keep = memfit::after_add::keep, zero = memfit::after_add::zero;
    auto const both = [&](auto& g, double items, memfit::after_add after) {
      host.add(g.host, items, after);
      device.add(g.there(), items, after);
    };
    for (int window = 0; window < 2; ++window) {
      both(a, 3, keep);
      both(b, 1, keep);
      both(c, 0, keep);
      both(c, 7.5, zero);
      both(a, 1, keep);
      expect_same_sums(host, device);
      host.close();
      device.close();
    }
    both(b, 0, zero);
    expect_same_sums(host, device);
    a.expect_same();
    b.expect_same();
    c.expect_same();
  }
}

TEST(cuda_sums, fp32) {
  sums_have_the_bits_of_the_host<memfit::fp32>();
}
TEST(cuda_sums, stochastic_bf16) {
  sums_have_the_bits_of_the_host<memfit::stochastic<memfit::bf16>>();
}
TEST(cuda_sums, split_bf16) {
  sums_have_the_bits_of_the_host<memfit::split<memfit::bf16>>();
}

TEST(cuda_sums, corrected_bf16) {
  sums_have_the_bits_of_the_host<memfit::corrected<memfit::bf16>>();
}

template <class From, class To>
void casts_have_the_bits_of_the_host(bool at_random) {
  for (std::int64_t offset : {0, 1})
    for (auto n : counts) {
      auto const from = as<From>(test::make_input(test::kind::mixed, n, 3));
      std::vector<To> to(from.size());
      test::on_device<From> const from_there(from, offset);
      test::on_device<To> const to_there(n, 0);
      tensor_ref<From> const source{from_there.data(), n};
      tensor_ref<To> const target{to_there.data(), n};
      if constexpr (!std::is_same_v<To, float>) {
        if (at_random) {
          memfit::cast_stochastic(memfit::host{1}, from, to, 9);
          memfit::cast_stochastic(memfit::cuda{}, source, target, 9);
        }
      }
      if (!at_random) {
        memfit::cast(memfit::host{1}, from, to);
        memfit::cast(memfit::cuda{}, source, target);
      }
      EXPECT_EQ(test::bytes_of(to_there.get()), test::bytes_of(to));
      EXPECT_TRUE(to_there.intact() && from_there.intact());
    }
}

TEST(cuda_cast, to_nearest_and_at_random) {
  for (bool at_random : {false, true}) {
    casts_have_the_bits_of_the_host<float, memfit::bf16>(at_random);
    casts_have_the_bits_of_the_host<float, memfit::fp16>(at_random);
    casts_have_the_bits_of_the_host<memfit::bf16, memfit::fp16>(at_random);
  }
  casts_have_the_bits_of_the_host<memfit::bf16, float>(false);
  casts_have_the_bits_of_the_host<memfit::fp16, float>(false);
}

TEST(cuda_sums, a_tensor_without_gradient_gets_nothing) {
  tensors p({300, 300}, 1), g({300, 300}, 2);
  gradient_accumulator host(memfit::host{1}, p.on_host()),
      device(memfit::cuda{}, p.on_device_side());
  auto const without = [](test::refs all, std::size_t index) {
    all[index] = {};
    return all;
  };
  for (std::size_t absent : {0, 1, 0}) {
    host.add_sums(without(g.on_host(), absent), 1);
    device.add_sums(without(g.on_device_side(), absent), 1);
  }
  expect_same_sums(host, device);
}

TEST(cuda_sums, refuse_gradients_of_the_host) {
  tensors p({300}, 1);
  gradient_accumulator device(memfit::cuda{}, p.on_device_side());
  test::expect_refusal<memfit::argument_error>([&] { device.add(p.on_host(), 1); },
                                               {"gradient_accumulator::add", "t0", "host"});
}

/// Everything that a training loop holds, on one side.
template <class Exec>
struct training {
  using optimizer8 = memfit::optimizer<memfit::adamw, memfit::float8>;
  optimizer8 optimizer;
  gradient_accumulator<> sums;
  memfit::loss_scaler scaler;

  static memfit::loss_scaler_options scaling() {
    memfit::loss_scaler_options o;
    o.initial = 1024;
    o.interval = 3;
    return o;
  }
  training(Exec const& exec, test::refs const& p)
      : optimizer(exec, memfit::adamw{.lr = 0.01, .weight_decay = 0.1}, p, {.min_quantized = 1}),
        sums(exec, p),
        scaler(exec, scaling()) {}

  void window(test::refs const& a, memfit::item_count a_items, test::refs const& b,
              memfit::item_count b_items) {
    sums.add(a, a_items);
    sums.add_sums(b, b_items);
    auto g = scaler.unscale(sums);
    g = memfit::clip_norm(sums, g, 0.05);
    g = memfit::clip_percentile(sums, g, 50);
    g = memfit::clip_value(g, 1e-3f);
    optimizer.step(sums, g);
    scaler.update(g);
  }
};

template <class A, class B>
void expect_same_training(A const& host, B const& device, tensors const& p) {
  p.expect_same();
  test::expect_same_states(host.optimizer, device.optimizer);
  EXPECT_EQ(host.scaler.value_sync(), device.scaler.value_sync());
  EXPECT_EQ(host.scaler.skipped_sync(), device.scaler.skipped_sync());
  EXPECT_EQ(host.scaler.state_sync().clean, device.scaler.state_sync().clean);
}

/// Two micro-batches on both sides; in some windows one gradient overflows, in one there is none.
struct batches {
  tensors a, b;
  std::vector<float> host_items{0, 0};
  test::on_device<float> items{2};

  explicit batches(std::vector<std::int64_t> const& sizes) : a(sizes, 1), b(sizes, 2) {}
  void next(int window) {
    a.set(static_cast<std::uint64_t>(10 + 100 * window));
    b.set(static_cast<std::uint64_t>(50 + 100 * window));
    if (window % 4 == 2) {
      b.host[1][7] = window % 8 == 2 ? INFINITY : std::nanf("");
      b.device[1].set(b.host[1]);
    }
    host_items = {window == 5 ? 0.0f : 3.0f, window == 5 ? 0.0f : static_cast<float>(window)};
    items.set(host_items);
  }
};

std::vector<std::int64_t> const sizes{0, 300, 2000};

TEST(cuda_window, has_the_bits_of_the_host_and_waits_for_nothing) {
  tensors p(sizes, 1);
  batches batch(sizes);
  training<memfit::host> host(memfit::host{2}, p.on_host());
  training<memfit::cuda> device(memfit::cuda{}, p.on_device_side());
  for (int window = 0; window < 12; ++window) {
    batch.next(window);
    host.window(batch.a.on_host(), 3, batch.b.on_host(), window);
    auto const waited = test::waits();
    device.window(batch.a.on_device_side(), 3, batch.b.on_device_side(), window);
    EXPECT_EQ(test::waits(), waited);
    auto const here = host.sums.clipper().norm_sync(), there = device.sums.clipper().norm_sync();
    EXPECT_TRUE(here == there || (std::isnan(here) && std::isnan(there))) << here << ' ' << there;
    expect_same_training(host, device, p);
  }
  EXPECT_EQ(host.scaler.skipped_sync(), 3);
  EXPECT_EQ(host.optimizer.steps_sync(1), 9);
}

TEST(cuda_window, can_be_captured_whole_and_replayed) {
  tensors p(sizes, 1);
  batches batch(sizes);
  test::stream s;
  training<memfit::host> host(memfit::host{1}, p.on_host());
  training<memfit::cuda> device(memfit::cuda{s}, p.on_device_side());
  test::graph const window(s, [&] {
    device.window(batch.a.on_device_side(), batch.items.data(), batch.b.on_device_side(),
                  batch.items.data() + 1);
  });
  for (int i = 0; i < 12; ++i) {
    batch.next(i);
    host.window(batch.a.on_host(), batch.host_items.data(), batch.b.on_host(),
                batch.host_items.data() + 1);
    window.launch(s);
    s.wait();
    expect_same_training(host, device, p);
  }
  EXPECT_EQ(host.optimizer.steps_sync(1), 8) << "three overflows and an empty window";
}

/// The same without sums: each stage, of one tensor, is stepped as soon as it is complete, and two
/// micro-batches join the moments.
template <class Exec>
struct releasing {
  using optimizer8 = typename training<Exec>::optimizer8;
  optimizer8 optimizer;
  memfit::gradient_release<optimizer8> release;
  memfit::loss_scaler scaler;

  releasing(Exec const& exec, test::refs const& p)
      : optimizer(exec, memfit::adamw{.lr = 0.01, .weight_decay = 0.1}, p, {.min_quantized = 1}),
        release(exec, optimizer, {.clip_norm = 0.05}),
        scaler(exec, training<Exec>::scaling()) {}

  void window(test::refs const& a, test::refs const& b) {
    release.begin_folded(4, scaler.scale());
    backward(a, 3);
    backward(b, 1);
    scaler.update(release.finish(scaler));
  }
  void backward(test::refs const& gradients, std::int64_t items) {
    release.micro_batch(items);
    for (auto i = gradients.size(); i-- > 0;) release.complete(i, test::refs{gradients[i]});
  }
};

TEST(cuda_window, of_released_gradients_has_the_bits_of_the_host_and_waits_for_nothing) {
  tensors p(sizes, 1);
  batches batch(sizes);
  releasing<memfit::host> host(memfit::host{2}, p.on_host());
  releasing<memfit::cuda> device(memfit::cuda{}, p.on_device_side());
  for (int window = 0; window < 8; ++window) {
    batch.next(window);
    host.window(batch.a.on_host(), batch.b.on_host());
    auto const waited = test::waits();
    device.window(batch.a.on_device_side(), batch.b.on_device_side());
    EXPECT_EQ(test::waits(), waited);
    EXPECT_EQ(host.release.norm_sync(), device.release.norm_sync());
    expect_same_training(host, device, p);
  }
  EXPECT_EQ(host.scaler.skipped_sync(), 2);
  EXPECT_EQ(host.optimizer.steps_sync(2), 8) << "the last stage goes first";
}

TEST(cuda_window, of_released_gradients_can_be_captured_after_the_first) {
  tensors p(sizes, 1);
  batches batch(sizes);
  test::stream s;
  releasing<memfit::host> host(memfit::host{1}, p.on_host());
  releasing<memfit::cuda> device(memfit::cuda{s}, p.on_device_side());
  batch.next(0);
  host.window(batch.a.on_host(), batch.b.on_host());
  device.window(batch.a.on_device_side(), batch.b.on_device_side());
  s.wait();
  test::graph const window(
      s, [&] { device.window(batch.a.on_device_side(), batch.b.on_device_side()); });
  for (int i = 1; i < 6; ++i) {
    batch.next(i);
    host.window(batch.a.on_host(), batch.b.on_host());
    window.launch(s);
    s.wait();
    expect_same_training(host, device, p);
  }
}

TEST(cuda_window, sums_that_a_kernel_added_to_are_looked_at) {
  tensors p({3000}, 1);
  training<memfit::cuda> device(memfit::cuda{}, p.on_device_side());
  device.sums.zero();
  float const inf = INFINITY;
  test::require(
      cudaMemcpy(device.sums.sums(0).data + 2999, &inf, sizeof inf, cudaMemcpyHostToDevice));
  device.sums.added(1);
  auto const g = device.scaler.unscale(device.sums);
  device.optimizer.step(device.sums, g);
  device.scaler.update(g);
  EXPECT_EQ(device.scaler.skipped_sync(), 1);
  EXPECT_EQ(device.optimizer.steps_sync(0), 0);
  p.expect_same();
}

TEST(cuda_window, more_than_a_hundred_norms_for_a_percentile) {
  memfit::norm_clipper host(memfit::host{1}), device(memfit::cuda{});
  test::on_device<double> there(1);
  for (int i = 0; i < 230; ++i) {
    double const norm = std::fmod(i * 37.0, 101.0);
    there.set(std::vector<double>{norm});
    auto const a = host.percentile(&norm, {}, 10), b = device.percentile(there.data(), {}, 10);
    float got = 0;
    memfit::cuda{}.copy_to_host(&got, b.multiplier, sizeof got);
    ASSERT_EQ(got, *a.multiplier) << i;
  }
}

}  // namespace
