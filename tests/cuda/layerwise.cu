// A user's layerwise rule on the device: the host's bits in few launches, captured and replayed,
// and stateless.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "cuda/counted.hpp"
#include "cuda/tensors.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/memfit.cuh"

namespace {

using test::expect_same_states, test::graph, test::tensors;

/// Momentum whose steps have the length lr, written for floats.
struct unit_momentum {
  double lr = 0.1;
  static constexpr std::array<memfit::slot, 1> slots{{{"buffer", memfit::range::any}}};
  struct constants {
    double lr;
    float size;
    MEMFIT_HD float direction(float, float g, float (&s)[1]) const {
      return s[0] = memfit::fma(0.5f, s[0], g);
    }
    MEMFIT_HD void operator()(float& p, float g, float (&s)[1]) const {
      p = memfit::fma(-size, direction(p, g, s), p);
    }
    MEMFIT_HD constants with(memfit::layer_norms const& n) const {
      return {lr, n.direction > 0 ? static_cast<float>(lr / n.direction) : 0.0f};
    }
  };
  MEMFIT_HD constants at(std::int64_t) const { return {lr, 0}; }
};
using optimizer8 = memfit::optimizer<unit_momentum, memfit::float8>;

TEST(cuda_layerwise, any_number_of_tensors_takes_two_launches_more_and_no_wait) {
  for (std::int64_t copies : {1, 50}) {
    std::vector<std::int64_t> counts;
    for (std::int64_t i = 0; i < copies; ++i)
      for (std::int64_t n : {1025, 300, 7}) counts.push_back(n + i);
    tensors p(counts, 1), g(counts, 1000);
    memfit::optimizer_options const all{.min_quantized = 1};
    optimizer8 host(memfit::host{2}, {}, p.on_host(), all);
    optimizer8 device(memfit::cuda{}, {}, p.on_device_side(), all);
    for (int i = 0; i < 2; ++i) {
      auto const before = test::launches(), waited = test::waits();
      device.step(g.on_device_side());
      auto const used = test::launches() - before;
      if (i > 0 && before >= 0) EXPECT_EQ(used, 4);
      EXPECT_EQ(test::waits(), waited);
      host.step(g.on_host());
    }
    p.expect_same();
    expect_same_states(host, device, 1);
  }
}

TEST(cuda_layerwise, replays_measure_anew_and_skip) {
  tensors p({5000, 300, 4096}, 1), g({5000, 300, 4096}, 10);
  test::stream s;
  optimizer8 host(memfit::host{1}, {}, p.on_host()),
      device(memfit::cuda{s}, {}, p.on_device_side());
  test::on_device<std::uint32_t> skip(std::vector<std::uint32_t>{0});
  graph const step(s, [&] { device.step(g.on_device_side(), {.skip = skip.data()}); });
  for (int i = 0; i < 5; ++i) {
    skip.set(std::vector<std::uint32_t>{i == 2 ? 1u : 0u});
    step.launch(s);
    s.wait();
    if (i != 2) host.step(g.on_host());
  }
  p.expect_same();
  expect_same_states(host, device, 1);
}

TEST(cuda_layerwise, a_stateless_step_has_the_bits_of_the_host) {
  auto p = test::make_input(test::kind::normal, 3001, 1);
  auto g = test::make_input(test::kind::normal, 3001, 2);
  std::vector<std::uint8_t> m(3001);
  std::vector<float> scales(12);
  test::on_device<float> const p_there(p), g_there(g), scales_there(scales);
  test::on_device<std::uint8_t> const m_there(m);
  for (std::int64_t t = 1; t <= 3; ++t) {
    memfit::step<memfit::float8>(memfit::host{1}, unit_momentum{}, t, p, g,
                                 {{m.data(), scales.data()}});
    memfit::step<memfit::float8>(
        memfit::cuda{}, unit_momentum{}, t, memfit::tensor_ref<float>{p_there.data(), 3001},
        memfit::tensor_ref<float>{g_there.data(), 3001}, {{m_there.data(), scales_there.data()}});
  }
  EXPECT_EQ(p_there.get(), p);
  EXPECT_EQ(m_there.get(), m);
  EXPECT_EQ(scales_there.get(), scales);
  EXPECT_TRUE(p_there.intact() && m_there.intact() && scales_there.intact());
}

}  // namespace
