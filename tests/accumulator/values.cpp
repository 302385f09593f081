// Every kind of sum of every kind of gradient: the values of a reference that adds one element at a
// time, the same bits from every host executor, nothing written beside the tensors.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/exec/host.hpp"
#include "support/guarded.hpp"
#include "support/hosts.hpp"
#include "support/inputs.hpp"

namespace {

using memfit::gradient_accumulator, memfit::tensor_ref;

constexpr std::int64_t counts[] = {0, 1, 15, 16, 17, 1000, 66'001};

template <class Element>
struct micro_batch {
  double items;
  std::vector<test::guarded<Element>> gradients;
};

template <class Element>
micro_batch<Element> make(double items, std::uint64_t seed, test::kind kind) {
  micro_batch<Element> m{items, {}};
  for (auto n : counts)
    m.gradients.emplace_back(test::make_input(kind, n, seed + m.gradients.size()), 1);
  return m;
}
template <class Element>
auto refs(micro_batch<Element>& m) {
  std::vector<tensor_ref<Element>> all;
  for (auto& g : m.gradients) all.push_back(g.ref());
  return all;
}

template <class Column>
std::vector<std::uint8_t> bytes_of(gradient_accumulator<Column> const& sums) {
  std::vector<std::uint8_t> all;
  for (auto const& t : sums) test::append_bytes(all, t.data, t.count);
  return all;
}

template <class Element>
void fp32_sums_are_those_of_the_reference(test::kind kind) {
  std::vector<micro_batch<Element>> window;
  for (double items : {3.0, 1.0, 7.5}) window.push_back(make<Element>(items, 10, kind));
  std::vector<std::uint8_t> expected;
  for (std::size_t t = 0; t < std::size(counts); ++t)
    for (std::int64_t i = 0; i < counts[t]; ++i) {
      float sum = 0;
      bool first = true;
      for (auto& m : window) {
        auto const g = static_cast<float>(m.gradients[t][i]), w = static_cast<float>(m.items);
        sum = first ? g * w : std::fma(g, w, sum);
        first = false;
      }
      test::append_bytes(expected, &sum, 1);
    }
  for (auto const& host : test::all_hosts()) {
    gradient_accumulator sums(host.exec, refs(window[0]));
    for (auto& m : window) sums.add(refs(m), m.items);
    EXPECT_EQ(bytes_of(sums), expected) << host.name << ' ' << test::name_of(kind);
    for (auto& m : window)
      for (auto& g : m.gradients) EXPECT_TRUE(g.intact());
  }
}

TEST(accumulator, fp32_sums_are_those_of_the_reference) {
  fp32_sums_are_those_of_the_reference<float>(test::kind::lognormal);
  fp32_sums_are_those_of_the_reference<memfit::bf16>(test::kind::lognormal);
  fp32_sums_are_those_of_the_reference<memfit::fp16>(test::kind::sparse);
  fp32_sums_are_those_of_the_reference<float>(test::kind::mixed);
  fp32_sums_are_those_of_the_reference<float>(test::kind::subnormal);
}

template <class Column>
std::vector<std::uint8_t> sums_on(memfit::host const& exec, std::uint64_t seed) {
  auto a = make<float>(2, 1, test::kind::normal);
  auto b = make<memfit::bf16>(5, 2, test::kind::lognormal);
  gradient_accumulator<Column> sums(exec, refs(a), {.seed = seed});
  sums.add(refs(a), a.items);
  sums.add_sums(refs(b), b.items);
  sums.add(refs(a), a.items);
  return bytes_of(sums);
}

TEST(accumulator, every_host_gives_the_same_bits) {
  auto const hosts = test::all_hosts();
  auto const noisy = sums_on<memfit::stochastic<memfit::bf16>>(hosts[0].exec, 1);
  auto const split = sums_on<memfit::split<memfit::bf16>>(hosts[0].exec, 1);
  for (auto const& host : hosts) {
    EXPECT_EQ(sums_on<memfit::stochastic<memfit::bf16>>(host.exec, 1), noisy) << host.name;
    EXPECT_EQ(sums_on<memfit::split<memfit::bf16>>(host.exec, 1), split) << host.name;
  }
  EXPECT_NE(sums_on<memfit::stochastic<memfit::bf16>>(hosts[0].exec, 2), noisy) << "the seed";
}

TEST(accumulator, sums_in_two_parts_are_the_fp32_sums_as_bf16) {
  auto a = make<float>(2, 1, test::kind::lognormal), b = make<float>(3, 2, test::kind::lognormal);
  gradient_accumulator wide(memfit::host{1}, refs(a));
  gradient_accumulator<memfit::split<memfit::bf16>> split(memfit::host{1}, refs(a));
  for (int i = 0; i < 20; ++i) {
    wide.add(refs(a), 2);
    split.add(refs(a), 2);
    wide.add(refs(b), 3);
    split.add(refs(b), 3);
  }
  for (std::size_t t = 0; t < std::size(counts); ++t)
    for (std::int64_t i = 0; i < counts[t]; ++i) {
      auto const exact = wide.begin()[static_cast<std::ptrdiff_t>(t)].data[i];
      auto const seen = split.begin()[static_cast<std::ptrdiff_t>(t)].data[i];
      ASSERT_NEAR(static_cast<float>(seen), exact, std::fabs(exact) * 0x1p-8f);
    }
}

TEST(accumulator, bytes_are_those_documented) {
  std::vector<std::vector<float>> const tensors{std::vector<float>(3200), std::vector<float>(64)};
  memfit::host const exec{1};
  EXPECT_EQ(gradient_accumulator(exec, tensors).bytes(), 4 * 3264);
  EXPECT_EQ(gradient_accumulator<memfit::stochastic<memfit::bf16>>(exec, tensors).bytes(),
            2 * 3264);
  EXPECT_EQ(gradient_accumulator<memfit::split<memfit::bf16>>(exec, tensors).bytes(), 4 * 3264);
  gradient_accumulator odd(exec, std::vector<std::vector<float>>{{1}, {}, {2, 3}});
  EXPECT_EQ(odd.bytes(), 2 * 128);
  for (auto const& t : odd) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data) % 64, 0u);
}

}  // namespace
