// GA-07: the norm of sharded gradients was averaged over ranks, and replicated ones counted once
// per rank, so that clipping depended on the number of ranks. Here: squares of shards are summed,
// replicated tensors count once, padding not at all.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "memfit/clip.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/parallel/sharded_norm.hpp"
#include "support/ranks.hpp"

namespace {

using views = std::vector<memfit::tensor_ref<float const>>;
using memfit::thread_rank;

double norm(thread_rank& end, views const& sharded, views const& replicated) {
  memfit::sharded_norm all(memfit::host{1}, sharded, replicated);
  auto const* const at = all(end, sharded, replicated);
  EXPECT_EQ(*at, all.value_sync());
  return *at;
}

TEST(ga_07, shards_are_summed_and_replicated_tensors_count_once) {
  test::as_ranks(2, [](thread_rank& end) {
    float const shard = end.rank() == 0 ? 3 : 4, replicated = 2;
    EXPECT_DOUBLE_EQ(norm(end, {{&shard, 1}}, {}), 5);
    EXPECT_DOUBLE_EQ(norm(end, {{&shard, 1}}, {{&replicated, 1}}), std::sqrt(29.0));
    EXPECT_DOUBLE_EQ(norm(end, {}, {{&replicated, 1}}), 2);
    EXPECT_EQ(norm(end, {}, {}), 0);
  });
}

TEST(ga_07, the_norm_does_not_depend_on_the_number_of_ranks) {
  constexpr std::int64_t count = 1000;
  std::vector<float> all;
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(static_cast<float>((i * 37) % 101) / 50.0f - 1.0f);
    squares += static_cast<double>(all.back()) * static_cast<double>(all.back());
  }
  for (int ranks = 1; ranks <= 8; ++ranks)
    test::as_ranks(ranks, [&](thread_rank& end) {
      // Shards of one length, the last of them padded with garbage.
      auto const length = (count + end.size() - 1) / end.size();
      auto const first = length * end.rank();
      std::vector<float> shard(static_cast<std::size_t>(length), 1e30f);
      auto const inside = std::min(length, count - first);
      std::copy(all.begin() + first, all.begin() + first + inside, shard.begin());
      EXPECT_NEAR(norm(end, {{shard.data(), inside}}, {}), std::sqrt(squares),
                  1e-6 * std::sqrt(squares))
          << ranks;
    });
}

TEST(ga_07, one_rank_with_an_overflow_skips_on_all) {
  test::as_ranks(3, [](thread_rank& end) {
    float const shard = end.rank() == 2 ? HUGE_VALF : 1;
    views const mine{{&shard, 1}};
    memfit::sharded_norm all(memfit::host{1}, mine, views{});
    memfit::norm_clipper clipper(memfit::host{1});
    EXPECT_EQ(*clipper.limit(all(end, mine, views{}), {}, 1).skip, memfit::skip_nonfinite);
  });
}

}  // namespace
