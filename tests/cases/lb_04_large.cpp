// LB-04 at its size: 2^31 + 257 elements are coded, decoded and stepped, and each that is looked at
// is what a small tensor has in its place. Label large: 13 GB of memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/quantize.hpp"
#include "memfit/rule/adaptive.hpp"

namespace {

using memfit::bf16, memfit::float8, memfit::dynamic8;

constexpr std::int64_t count = (std::int64_t{1} << 31) + 257;
constexpr std::int64_t blocks = memfit::block_count(count, 256);
using code_at = memfit::codec_for<dynamic8, memfit::range::non_negative>;

/// Where to look: places at random, and all of the end.
std::vector<std::int64_t> places(std::int64_t last, int at_random, std::int64_t multiple) {
  std::vector<std::int64_t> all;
  std::mt19937_64 random(4);
  for (int i = 0; i < at_random; ++i) {
    auto const place = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
    all.push_back(place / multiple * multiple);
  }
  for (auto i = count - last; i < count; i += multiple) all.push_back(i / multiple * multiple);
  return all;
}

/// Writes make(i) to every element i.
template <class T, class Make>
void fill(memfit::host const& exec, T* to, Make const& make) {
  constexpr std::int64_t part = 1 << 20;
  exec.for_each_task((count + part - 1) / part, [&](std::int64_t task) {
    for (auto i = task * part; i < std::min(count, (task + 1) * part); ++i) to[i] = make(i);
  });
}

std::uint8_t pattern(std::int64_t i) {
  return static_cast<std::uint8_t>(i % 251);
}

TEST(LB_04_large, codes_are_read_and_written_in_their_places) {
  memfit::host const exec;
  auto const code_memory = exec.allocate(count), scale_memory = exec.allocate(4 * blocks),
             value_memory = exec.allocate(2 * count);
  auto* const codes = static_cast<std::uint8_t*>(code_memory.data());
  auto* const scales = static_cast<float*>(scale_memory.data());
  auto* const values = static_cast<bf16*>(value_memory.data());
  memfit::tensor_ref<std::uint8_t> const c(codes, count);
  memfit::tensor_ref<float> const s(scales, blocks);
  memfit::tensor_ref<bf16> const x(values, count);
  fill(exec, codes, pattern);
  for (std::int64_t b = 0; b < blocks; ++b) scales[b] = static_cast<float>(1 + b % 3);
  memfit::dequantize<dynamic8, memfit::range::non_negative>(exec, c, s, x);
  auto const value = [](std::int64_t i) {
    return bf16(code_at::decode(std::uint32_t{pattern(i)}) * static_cast<float>(1 + i / 256 % 3));
  };
  for (auto i : places(300, 1000, 1)) ASSERT_EQ(values[i].bits, value(i).bits) << i;

  exec.fill(codes, 0xff, count);
  exec.fill(scales, 0xff, 4 * blocks);
  memfit::quantize<dynamic8, memfit::range::non_negative>(exec, x, c, s);
  for (auto i : places(300, 1000, 256)) {
    auto const n = std::min<std::int64_t>(256, count - i);
    std::vector<bf16> block;
    for (auto j = i; j < i + n; ++j) block.push_back(value(j));
    std::vector<std::uint8_t> want(block.size());
    std::vector<float> scale(1);
    memfit::quantize<dynamic8, memfit::range::non_negative>(exec, block, want, scale);
    ASSERT_EQ(scales[i / 256], scale[0]) << i;
    ASSERT_EQ(std::memcmp(codes + i, want.data(), want.size()), 0) << i;
  }
}

/// The columns of a step of adamw on bf16 parameters that are rounded at random: 6 bytes each.
struct columns {
  memfit::buffer parameter, gradient, codes[2], scales[2];
  memfit::step_item<memfit::adamw> item{};

  columns(memfit::host const& exec, std::int64_t n, memfit::noise_key key)
      : parameter(exec.allocate(2 * n)), gradient(exec.allocate(2 * n)) {
    item.visible = parameter.data();
    item.gradient = gradient.data();
    item.gradient_kind = memfit::scalar_kind::bf16;
    item.count = n;
    item.constants = memfit::adamw{.lr = 0.1, .weight_decay = 0.1}.at(1);
    item.key = key;
    for (int slot = 0; slot < 2; ++slot) {
      codes[slot] = exec.allocate(n);
      scales[slot] = exec.allocate(4 * memfit::block_count(n, 256));
      exec.fill(codes[slot].data(), 0, codes[slot].bytes());
      exec.fill(scales[slot].data(), 0, scales[slot].bytes());
      item.moments[slot] = {codes[slot].data(), static_cast<float*>(scales[slot].data())};
    }
  }
  bf16* parameters() const { return static_cast<bf16*>(parameter.data()); }
  bf16* gradients() const { return static_cast<bf16*>(gradient.data()); }
  void step(memfit::host const& exec) const {
    exec.step<memfit::adamw, float8, memfit::stochastic<bf16>>(item, {});
  }
};

bf16 parameter(std::int64_t i) {
  return bf16(1 + static_cast<float>(i % 1009) * 0x1p-8f);
}
bf16 gradient(std::int64_t i) {
  return bf16(static_cast<float>(i % 4099) * 0x1p-6f - 30);
}

TEST(LB_04_large, a_step_reaches_every_element_once) {
  memfit::host const exec;
  memfit::noise_key const key = memfit::make_noise_key(1, 1, 0);
  columns const all(exec, count, key);
  fill(exec, all.parameters(), parameter);
  fill(exec, all.gradients(), gradient);
  all.step(exec);
  constexpr std::int64_t part = 512;
  for (auto first : places(part, 1000, part)) {
    auto const n = std::min(part, count - first);
    // Where the lower bits of `first` are zero, an element's index differs from its number in the
    // part by these bits alone.
    columns const some(exec, n, {key.first ^ static_cast<std::uint32_t>(first), key.second});
    for (std::int64_t i = 0; i < n; ++i) {
      some.parameters()[i] = parameter(first + i);
      some.gradients()[i] = gradient(first + i);
    }
    some.step(exec);
    auto const same = [&](memfit::buffer const& whole, memfit::buffer const& small,
                          std::int64_t from) {
      return std::memcmp(static_cast<char const*>(whole.data()) + from, small.data(),
                         static_cast<std::size_t>(small.bytes())) == 0;
    };
    ASSERT_TRUE(same(all.parameter, some.parameter, 2 * first)) << first;
    for (int slot = 0; slot < 2; ++slot) {
      ASSERT_TRUE(same(all.codes[slot], some.codes[slot], first)) << first;
      ASSERT_TRUE(same(all.scales[slot], some.scales[slot], first / 256 * 4)) << first;
    }
  }
}

}  // namespace
