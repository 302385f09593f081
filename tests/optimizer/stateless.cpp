// The stateless step on buffers of the caller: the same bits as the optimizer, and the same care.
// For frameworks that keep moments and counters themselves.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "memfit/step.hpp"
#include "optimizer/model.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

constexpr memfit::adamw rule{
    .lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
constexpr std::int64_t count = 600, blocks = 3;

/// Fresh moments of adamw in float8 between canaries.
struct moments8 {
  test::guarded<std::uint8_t> codes[2] = {test::guarded<std::uint8_t>(count),
                                          test::guarded<std::uint8_t>(count)};
  test::guarded<float> scales[2] = {test::guarded<float>(blocks), test::guarded<float>(blocks)};

  memfit::moment_ref ref(int slot) { return {codes[slot].data(), scales[slot].data()}; }
  bool intact() const {
    return codes[0].intact() && codes[1].intact() && scales[0].intact() && scales[1].intact();
  }
};

std::vector<float> input(std::uint64_t seed) {
  return test::make_input(test::kind::normal, count, seed);
}

TEST(stateless_step, has_the_bits_of_the_optimizer) {
  test::model<memfit::adamw, memfit::float8> expected(memfit::host{1}, rule, {input(1)});
  test::guarded<float> p(input(1));
  moments8 m;
  float const multiplier = 0.7f;
  for (std::int64_t t = 1; t <= 3; ++t) {
    auto const g = input(static_cast<std::uint64_t>(10 * t));
    expected.optimizer().step_one(0, g, {.multiplier = &multiplier});
    memfit::step<memfit::float8>(memfit::host{2}, rule, t, p.ref("w"), g, {m.ref(0), m.ref(1)},
                                 {.multiplier = &multiplier});
    ASSERT_EQ(p.snapshot(), expected.tensor(0).snapshot()) << "step " << t;
  }
  EXPECT_TRUE(p.intact() && m.intact());
}

TEST(stateless_step, skips_where_the_gate_says_so) {
  test::guarded<float> p(input(1));
  moments8 m;
  auto const before = p.snapshot();
  std::uint32_t const skip = 1;
  memfit::step<memfit::float8>(memfit::host{1}, rule, 1, p.ref(), input(2), {m.ref(0), m.ref(1)},
                               {.skip = &skip});
  EXPECT_EQ(p.snapshot(), before);
}

class stateless_refusals : public testing::Test {
 protected:
  test::guarded<float> p{input(1)};
  std::vector<float> g = input(2);
  moments8 m;
  memfit::moment_ref first = m.ref(0), second = m.ref(1);
  memfit::tensor_ref<float> parameter = p.ref("wte"), gradient{g.data(), count};
  std::int64_t step_number = 1;
  memfit::adamw r = rule;

  template <class Error = memfit::argument_error>
  void refuses(std::initializer_list<std::string_view> parts) {
    auto const all = [&] {
      return std::vector{p.snapshot(), m.codes[0].snapshot(), m.codes[1].snapshot(),
                         m.scales[0].snapshot(), m.scales[1].snapshot()};
    };
    auto const before = all();
    auto const call = [&] {
      memfit::step<memfit::float8>(memfit::host{1}, r, step_number, parameter, gradient,
                                   {first, second});
    };
    test::expect_refusal<Error>(call, {"memfit::step", "'wte'"});
    test::expect_refusal<Error>(call, parts);
    EXPECT_EQ(all(), before);
  }
};

TEST_F(stateless_refusals, null_data) {
  gradient.data = nullptr;
  refuses({"gradient", "600"});
  gradient.data = g.data();
  parameter.data = nullptr;
  refuses({"parameter", "600"});
  parameter.data = p.data();
  first.codes = nullptr;
  refuses({"600"});
  first = m.ref(0);
  second.scales = nullptr;
  refuses({"3"});
}

TEST_F(stateless_refusals, counts_that_do_not_fit) {
  gradient.count = 599;
  refuses({"gradient", "599", "600"});
  gradient.count = parameter.count = -1;
  refuses({"-1"});
}

TEST_F(stateless_refusals, overlap) {
  gradient.data = p.data() + count - 1;
  gradient.count = count;
  refuses({"overlap"});
  gradient.data = g.data();
  second.codes = m.codes[0].data() + count - 1;
  refuses({"overlap"});
  second.codes = p.data();
  refuses({"overlap"});
}

TEST_F(stateless_refusals, steps_that_do_not_count_from_one) {
  for (std::int64_t wrong : {0, -1}) {
    step_number = wrong;
    refuses({std::to_string(wrong)});
  }
}

TEST_F(stateless_refusals, another_number_of_moments) {
  auto const before = p.snapshot();
  test::expect_refusal<memfit::argument_error>(
      [&] { memfit::step<memfit::float8>(memfit::host{1}, r, 1, parameter, gradient, {first}); },
      {"memfit::step", "wte", "1", "2"});
  EXPECT_EQ(p.snapshot(), before);
}

TEST_F(stateless_refusals, hyper_parameters) {
  r.beta2 = 1.0;
  refuses<memfit::hyperparameter_error>({"beta2"});
  r = rule;
  r.lr = HUGE_VAL;
  refuses<memfit::hyperparameter_error>({"lr"});
}

TEST_F(stateless_refusals, a_column_without_its_second_buffer) {
  test::guarded<memfit::bf16> narrow(input(1));
  auto const before = narrow.snapshot();
  using split = memfit::split<memfit::bf16>;
  test::expect_refusal<memfit::argument_error>(
      [&] {
        memfit::step<memfit::float8, split>(memfit::host{1}, r, 1, narrow.ref("wte"), gradient,
                                            {first, second});
      },
      {"memfit::step", "wte", "600"});
  EXPECT_EQ(narrow.snapshot(), before);
}

}  // namespace
