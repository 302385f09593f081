// Threads as ranks: sums in rank order, on every rank, whatever the counts; and what is refused.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "support/ranks.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::thread_group, memfit::thread_rank;

template <class T>
void sums_of() {
  for (int ranks : {1, 2, 3, 8})
    for (std::int64_t count : {0, 1, 2, 7, 511, 512, 5000}) {
      std::vector<std::vector<T>> got(static_cast<std::size_t>(ranks));
      test::as_ranks(ranks, [&](thread_rank& end) {
        auto& mine = got[static_cast<std::size_t>(end.rank())];
        for (std::int64_t i = 0; i < count; ++i)
          mine.push_back(T(static_cast<float>(end.rank() + 1) * static_cast<float>(i % 5)));
        for (int again = 0; again < 2; ++again) end.all_reduce_sum(mine.data(), count);
      });
      auto const all = static_cast<float>(ranks * ranks * (ranks + 1) / 2);
      for (auto const& mine : got)
        for (std::int64_t i = 0; i < count; ++i)
          ASSERT_EQ(static_cast<float>(mine[static_cast<std::size_t>(i)]),
                    static_cast<float>(T(all * static_cast<float>(i % 5))))
              << ranks << " ranks, element " << i << " of " << count;
    }
}

TEST(thread_group, sums_floats) {
  sums_of<float>();
}
TEST(thread_group, sums_doubles) {
  sums_of<double>();
}
TEST(thread_group, sums_bf16) {
  sums_of<memfit::bf16>();
}

TEST(thread_group, the_bits_do_not_depend_on_who_comes_first) {
  std::vector<float> expected;
  for (int run = 0; run < 20; ++run) {
    std::vector<std::vector<float>> got(3);
    test::as_ranks(3, [&](thread_rank& end) {
      auto& mine = got[static_cast<std::size_t>(end.rank())];
      for (int i = 0; i < 1000; ++i)
        mine.push_back(1.0f / static_cast<float>(1 + i * 3 + end.rank()));
      end.all_reduce_sum(mine.data(), 1000);
    });
    if (run == 0) expected = got[0];
    for (auto const& mine : got) ASSERT_EQ(mine, expected);
  }
}

TEST(thread_group, other_counts_are_refused_on_all_ranks_and_nothing_changes) {
  int refused[3] = {};
  test::as_ranks(3, [&](thread_rank& end) {
    std::vector<float> mine(4, 1.0f);
    test::expect_refusal<memfit::argument_error>(
        [&] { end.all_reduce_sum(mine.data(), end.rank() == 1 ? 3 : 4); },
        {"all_reduce_sum", "rank", "not all ranks"});
    EXPECT_EQ(mine, std::vector<float>(4, 1.0f));
    refused[end.rank()] = 1;
    end.all_reduce_sum(mine.data(), 4);
    EXPECT_EQ(mine, std::vector<float>(4, 3.0f));
  });
  EXPECT_EQ(std::accumulate(refused, refused + 3, 0), 3);
}

TEST(thread_group, ranks_that_are_none) {
  test::expect_refusal<memfit::argument_error>([] { thread_group(0); }, {"0 ranks"});
  thread_group const group(2);
  for (int rank : {-1, 2})
    test::expect_refusal<memfit::argument_error>([&] { group.at(rank); }, {"of 2"});
}

}  // namespace
