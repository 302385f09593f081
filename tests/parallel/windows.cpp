// Windows summed over ranks: the same training however its micro-batches are shared out.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/accumulator.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/scaler.hpp"
#include "support/inputs.hpp"
#include "support/ranks.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::gradient_accumulator, memfit::host, memfit::thread_rank;
using tensors = std::vector<std::vector<float>>;

constexpr int steps = 5;

/// Counts the sums over ranks that a window takes.
class counting {
 public:
  explicit counting(thread_rank& end) : end_(end) {}
  int rank() const { return end_.rank(); }
  int size() const { return end_.size(); }
  template <class T>
  void all_reduce_sum(T* data, std::int64_t count) {
    ++calls;
    end_.all_reduce_sum(data, count);
  }
  int calls = 0;

 private:
  thread_rank& end_;
};

/// Parameters after some steps of 8 micro-batches of unequal sizes, shared out over the ranks; in
/// window 2 one gradient overflows, on one rank only.
template <class Param>
tensors trained(int ranks) {
  std::vector<tensors> results(static_cast<std::size_t>(ranks));
  test::as_ranks(ranks, [&](thread_rank& end) {
    counting sums_over_ranks(end);
    tensors p{test::make_input(test::kind::normal, 300, 1), {0.5f}};
    memfit::optimizer<memfit::adamw, memfit::fp32> opt(
        host{1}, memfit::adamw{.lr = 0.01, .weight_decay = 0.1}, p);
    gradient_accumulator<Param> sums(host{1}, p);
    memfit::loss_scaler scaler(host{1});
    for (int step = 0; step < steps; ++step) {
      for (int micro = 0; micro < 8; ++micro) {
        if (micro % end.size() != end.rank()) continue;
        auto const seed = static_cast<std::uint64_t>(step * 8 + micro);
        tensors g{test::make_input(test::kind::normal, 300, seed), {1.0f}};
        for (auto& t : g)
          for (auto& x : t) x *= *scaler.scale();
        if (step == 2 && micro == 5) g[0][77] = INFINITY;
        auto const before = sums_over_ranks.calls;
        sums.add(g, 1 + micro * 3);
        EXPECT_EQ(sums_over_ranks.calls, before);
      }
      sums.reduce(sums_over_ranks);
      EXPECT_EQ(sums_over_ranks.calls, 2 * (step + 1));
      auto g = scaler.unscale(sums);
      EXPECT_EQ(*g.skip != 0, step == 2);
      g = memfit::clip_norm(sums, g, 10.0);
      opt.step(sums, g);
      scaler.update(g);
    }
    EXPECT_EQ(opt.steps_sync(0), steps - 1);
    EXPECT_EQ(scaler.value_sync(), 32768.0f);
    results[static_cast<std::size_t>(end.rank())] = p;
  });
  for (auto const& r : results) EXPECT_EQ(r, results[0]) << "ranks differ";
  return results[0];
}

TEST(reduce, the_same_training_for_any_number_of_ranks) {
  auto const alone = trained<memfit::fp32>(1);
  for (int ranks : {2, 3, 8}) {
    auto const together = trained<memfit::fp32>(ranks);
    for (std::size_t t = 0; t < alone.size(); ++t)
      for (std::size_t i = 0; i < alone[t].size(); ++i)
        ASSERT_NEAR(together[t][i], alone[t][i], 1e-6f) << ranks << " ranks";
  }
}

TEST(reduce, of_bf16_sums_gives_all_ranks_one_training) {
  auto const alone = trained<memfit::stochastic<memfit::bf16>>(1),
             together = trained<memfit::stochastic<memfit::bf16>>(3);
  for (std::size_t i = 0; i < alone[0].size(); ++i) EXPECT_NEAR(together[0][i], alone[0][i], 0.05f);
}

TEST(reduce, a_rank_without_micro_batches_takes_part) {
  test::as_ranks(2, [](thread_rank& end) {
    gradient_accumulator sums(host{1}, tensors{{0, 0}});
    sums.add_sums(tensors{{100, 100}}, 1);
    sums.close();
    if (end.rank() == 1) sums.add_sums(tensors{{3, 6}}, 3);
    sums.reduce(end);
    auto const g = sums.close();
    EXPECT_EQ(*g.skip, 0u);
    EXPECT_EQ(*g.multiplier, 1.0f / 3);
    EXPECT_EQ(sums.begin()->data[1], 6.0f);
    sums.reduce(end);
    EXPECT_EQ(*sums.close().skip, memfit::skip_empty) << "a window without any";
  });
}

TEST(reduce, once_per_window_and_nothing_after_it) {
  test::as_ranks(2, [](thread_rank& end) {
    gradient_accumulator sums(host{1}, tensors{{0}});
    sums.add_sums(tensors{{1}}, 1);
    sums.reduce(end);
    test::expect_refusal<memfit::order_error>([&] { sums.reduce(end); }, {"reduce", "close"});
    test::expect_refusal<memfit::order_error>([&] { sums.add(tensors{{1}}, 1); }, {"add", "close"});
    test::expect_refusal<memfit::order_error>([&] { sums.added(1); }, {"added", "close"});
    test::expect_refusal<memfit::order_error>([&] { sums.zero(); }, {"zero", "close"});
    EXPECT_EQ(sums.begin()->data[0], 2.0f);
    EXPECT_EQ(*sums.close().multiplier, 0.5f);
    sums.add(tensors{{1}}, 1);
  });
}

}  // namespace
