// The stateless functions on memfit::cuda: step, quantize, dequantize, zero, copy, global_norm; the
// host's bits for every kind of input.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cuda/device.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/memfit.cuh"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::range, memfit::tensor_ref;

constexpr std::int64_t lengths[] = {0, 1, 31, 255, 256, 257, 1000, 4096, 10'007};

/// Inputs of every kind, and some with infinities and NaN.
std::vector<std::vector<float>> inputs(std::int64_t n) {
  std::vector<std::vector<float>> all;
  for (auto k : test::all_kinds) all.push_back(test::make_input(k, n, 3));
  auto broken = test::make_input(test::kind::lognormal, n, 4);
  float const odd[] = {INFINITY, -INFINITY, std::nanf(""), 0.0f, -0.0f};
  for (std::size_t i = 0; i < broken.size(); i += 37) broken[i] = odd[i % 5];
  all.push_back(broken);
  return all;
}

template <class E>
std::vector<E> as(std::vector<float> const& values) {
  std::vector<E> out;
  for (float x : values) out.push_back(static_cast<E>(x));
  return out;
}

/// Scales as patterns, whatever their type.
template <class Scale>
std::vector<std::uint32_t> bits_of(std::vector<Scale> const& scales) {
  std::vector<std::uint32_t> bits;
  for (auto s : scales) bits.push_back(memfit::bits(static_cast<float>(s)));
  return bits;
}

template <class Format, range R, class In, class Out>
void codes_and_values(std::vector<float> const& values, std::int64_t offset) {
  using storage = memfit::storage<Format, R>;
  using code = typename storage::code;
  using scale = typename storage::scale;
  memfit::host const host{1};
  memfit::cuda const cuda{};
  auto in = as<In>(values);
  auto const n = std::ssize(in);
  auto const bytes = storage::code_bytes(n) / storage::code_size;
  auto const blocks = storage::scale_bytes(n) / storage::scale_size;
  std::vector<code> codes(static_cast<std::size_t>(bytes));
  std::vector<scale> scales(static_cast<std::size_t>(blocks));
  std::vector<Out> out(in.size());
  memfit::quantize<Format, R>(host, in, codes, scales);
  memfit::dequantize<Format, R>(host, codes, scales, out);

  test::on_device<In> const in_there(in, offset);
  test::on_device<code> const codes_there(bytes, offset);
  test::on_device<scale> const scales_there(blocks);
  test::on_device<Out> const out_there(n, offset);
  memfit::quantize<Format, R>(cuda, tensor_ref<In>{in_there.data(), n},
                              tensor_ref<code>{codes_there.data(), bytes},
                              tensor_ref<scale>{scales_there.data(), blocks});
  memfit::dequantize<Format, R>(cuda, tensor_ref<code>{codes_there.data(), bytes},
                                tensor_ref<scale>{scales_there.data(), blocks},
                                tensor_ref<Out>{out_there.data(), n});
  EXPECT_EQ(codes_there.get(), codes);
  EXPECT_EQ(bits_of(scales_there.get()), bits_of(scales));
  auto const got = out_there.get();
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto const a = static_cast<float>(got[i]), b = static_cast<float>(out[i]);
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << i << ": " << a << ", not " << b;
  }
  EXPECT_TRUE(in_there.intact() && codes_there.intact() && scales_there.intact() &&
              out_there.intact());
}

template <class Format>
void both_ranges() {
  for (auto n : lengths)
    for (auto const& values : inputs(n))
      for (std::int64_t offset : {0, 1}) {
        SCOPED_TRACE(std::to_string(n) + " elements, offset " + std::to_string(offset));
        codes_and_values<Format, range::any, float, float>(values, offset);
        codes_and_values<Format, range::non_negative, memfit::bf16, memfit::fp16>(values, offset);
        if (testing::Test::HasFailure()) return;
      }
}

TEST(cuda_quantize, float8) {
  both_ranges<memfit::float8>();
}
TEST(cuda_quantize, dynamic8) {
  both_ranges<memfit::dynamic8>();
}
TEST(cuda_quantize, linear8) {
  both_ranges<memfit::linear8>();
}
TEST(cuda_quantize, small_and_large_blocks) {
  both_ranges<memfit::blocked<memfit::dynamic8, 32>>();
  both_ranges<memfit::blocked<memfit::float8, 1024>>();
}
TEST(cuda_quantize, root8) {
  both_ranges<memfit::root8>();
}
TEST(cuda_quantize, companded8) {
  both_ranges<memfit::companded8>();
}
TEST(cuda_quantize, packed4) {
  both_ranges<memfit::packed4>();
}
TEST(cuda_quantize, formats_without_scales) {
  both_ranges<memfit::bf16>();
}

TEST(cuda_step, stateless_has_the_bits_of_the_host) {
  constexpr memfit::adamw rule{.lr = 0.01, .weight_decay = 0.1};
  auto p = test::make_input(test::kind::normal, 1000, 1);
  auto g = test::make_input(test::kind::normal, 1000, 2);
  std::vector<std::uint8_t> m(1000), v(1000);
  std::vector<float> ms(4), vs(4);
  test::on_device<float> const p_there(p), g_there(g), ms_there(ms), vs_there(vs);
  test::on_device<std::uint8_t> const m_there(m), v_there(v);
  for (std::int64_t t = 1; t <= 3; ++t) {
    memfit::step<memfit::float8>(memfit::host{1}, rule, t, p, g,
                                 {{m.data(), ms.data()}, {v.data(), vs.data()}});
    memfit::step<memfit::float8>(
        memfit::cuda{}, rule, t, tensor_ref<float>{p_there.data(), 1000},
        tensor_ref<float>{g_there.data(), 1000},
        {{m_there.data(), ms_there.data()}, {v_there.data(), vs_there.data()}});
  }
  EXPECT_EQ(p_there.get(), p);
  EXPECT_EQ(m_there.get(), m);
  EXPECT_EQ(v_there.get(), v);
  EXPECT_EQ(ms_there.get(), ms);
  EXPECT_EQ(vs_there.get(), vs);
  EXPECT_TRUE(p_there.intact() && m_there.intact() && v_there.intact() && ms_there.intact());
}

TEST(cuda_gradients, zero_and_copy) {
  memfit::cuda const exec{};
  auto const values = test::make_input(test::kind::normal, 777, 1);
  test::on_device<float> const a(values), b(777);
  memfit::copy(exec, tensor_ref<float>{a.data(), 777}, tensor_ref<float>{b.data(), 777});
  EXPECT_EQ(b.get(), values);
  memfit::zero(exec, tensor_ref<float>{a.data(), 777});
  EXPECT_EQ(a.get(), std::vector<float>(777));
  EXPECT_TRUE(a.intact() && b.intact());
}

TEST(cuda_gradients, global_norm_has_the_bits_of_the_host) {
  std::vector<std::int64_t> const counts{0, 1, 127, 128, 1023, 1024, 1025, 300'001};
  for (auto k : test::all_kinds) {
    for (std::int64_t offset : {0, 1}) {
      std::vector<std::vector<float>> values;
      std::vector<test::on_device<float>> there;
      std::vector<tensor_ref<float>> here_refs, there_refs;
      for (auto n : counts) values.push_back(test::make_input(k, n, static_cast<std::uint64_t>(n)));
      for (auto& v : values) {
        there.emplace_back(v, offset);
        here_refs.push_back({v.data(), std::ssize(v)});
        there_refs.push_back({there.back().data(), std::ssize(v)});
      }
      memfit::global_norm on_host(memfit::host{2}, here_refs),
          on_device(memfit::cuda{}, there_refs);
      on_host(here_refs);
      on_device(there_refs);
      EXPECT_EQ(on_host.value_sync(), on_device.value_sync()) << test::name_of(k);
      EXPECT_TRUE(std::isfinite(on_host.value_sync()));
    }
  }
}

}  // namespace
