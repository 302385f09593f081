// LS-03: a kernel that met an overflow stopped early and left the other elements unwritten, and the
// infinity, too, so that other ranks did not skip.
// Here: every sum is written whatever its neighbours are, and the flag is seen wherever one lies.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/scaler.hpp"
#include "optimizer/model.hpp"
#include "support/hosts.hpp"
#include "support/ranks.hpp"

namespace {

using vectors = test::vectors;
using model = test::model<memfit::adamw, memfit::float8, memfit::master<memfit::bf16>>;

vectors tensors() {
  vectors all{std::vector<float>(100'003), std::vector<float>(7), std::vector<float>(1)};
  for (auto& t : all)
    for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<float>(i % 13) - 6;
  return all;
}

struct placement {
  std::size_t tensor, element;
};
constexpr placement placements[] = {{0, 0},     {0, 1},     {0, 255},    {0, 256},
                                    {0, 65535}, {0, 65536}, {0, 100002}, {2, 0}};

TEST(ls_03, the_flag_and_every_element_wherever_the_overflow_lies) {
  auto const clean = tensors();
  for (auto const& host : test::all_hosts()) {
    if (host.exec.threads() == 2) continue;  // 1 and 5 are enough
    SCOPED_TRACE(host.name);
    model m(host.exec, memfit::adamw{.lr = 0.01, .weight_decay = 0.1}, clean);
    memfit::gradient_accumulator sums(host.exec, clean);
    memfit::loss_scaler scaler(host.exec, memfit::loss_scaler_options::fixed(2));
    m.optimizer().step(clean);
    int number = 0;
    for (auto const& [tensor, element] : placements) {
      float const bad = number % 3 == 0 ? HUGE_VALF : number % 3 == 1 ? -HUGE_VALF : NAN;
      SCOPED_TRACE(std::to_string(tensor) + ", " + std::to_string(element));
      auto poisoned = clean;
      poisoned[tensor][element] = bad;
      sums.add_sums(poisoned, 1);
      auto const g = scaler.unscale(sums);
      EXPECT_EQ(*g.skip, memfit::skip_nonfinite);
      EXPECT_EQ(*g.multiplier, 0.5f);
      std::size_t t = 0;
      for (auto const& s : sums) {
        for (std::size_t i = 0; i < clean[t].size(); ++i) {
          float const out = s.data[i] * *g.multiplier;
          if (t == tensor && i == element)
            ASSERT_FALSE(std::isfinite(out));
          else
            ASSERT_EQ(out, 0.5f * clean[t][i]) << t << ' ' << i;
        }
        ++t;
      }
      if (number++ % 4 == 0) {
        auto const before = m.bytes();
        m.optimizer().step(sums, g);
        EXPECT_EQ(m.bytes(), before);
      } else {
        g.mark_stepped();
      }
      scaler.update(g);
    }
    sums.add_sums(clean, 1);
    auto const g = scaler.unscale(sums);
    EXPECT_EQ(*g.skip, 0u) << "the flag is set anew in every window";
    auto const before = m.optimizer().steps_sync(0);
    m.optimizer().step(sums, g);
    EXPECT_EQ(m.optimizer().steps_sync(0), before + 1);
  }
}

TEST(ls_03, other_ranks_see_the_overflow_of_one) {
  test::as_ranks(3, [](memfit::thread_rank& end) {
    vectors g{{1, 2, 3}};
    if (end.rank() == 1) g[0][2] = -HUGE_VALF;
    memfit::gradient_accumulator sums(memfit::host{1}, g);
    memfit::loss_scaler scaler(memfit::host{1});
    sums.add_sums(g, 1);
    sums.reduce(end);
    EXPECT_EQ(*scaler.unscale(sums).skip, memfit::skip_nonfinite) << end.rank();
  });
}

}  // namespace
