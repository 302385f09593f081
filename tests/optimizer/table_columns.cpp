// The table's rows for parameters kept in 16 bits: nearest, stochastic, with a remainder, with a
// master copy. Every rule and every kind of state meets a column at least once.
#include "optimizer/table.hpp"

namespace {

using memfit::bf16, memfit::fp16, memfit::master, memfit::split, memfit::stochastic;

TEST(table_columns, bf16) {
  test::row<memfit::adamw, memfit::float8, bf16>(test::table_adamw);
  test::row<memfit::sgd, memfit::fp32, bf16>(test::table_sgd);
}
TEST(table_columns, fp16) {
  test::row<memfit::adamw, memfit::fp32, fp16>(test::table_adamw);
  test::row<memfit::momentum, memfit::dynamic8, fp16>(test::table_nesterov);
}
TEST(table_columns, stochastic) {
  test::row<memfit::adam, memfit::dynamic8, stochastic<bf16>>(test::table_adam);
  test::row<memfit::sgd, memfit::fp32, stochastic<bf16>>(test::table_sgd);
}

/// A column that keeps fp32 out of the model's sight takes the same steps as fp32 parameters do,
/// and the model sees them rounded to nearest.
template <class Rule, class Format, class Column>
void is_fp32_behind_the_scenes(Rule const& rule) {
  using narrow = typename test::element_of_column<Column>::type;
  for (auto k : test::ordinary_kinds) {
    auto start = test::table_start(k, false);
    for (auto& values : start)
      for (auto& x : values) x = static_cast<float>(narrow(x));
    test::model<Rule, Format, Column> hidden(memfit::host{1}, rule, start);
    test::model<Rule, Format> plain(memfit::host{1}, rule, start);
    for (int step = 1; step <= test::table_steps; ++step) {
      auto const gradients = test::table_gradients(start, k, step, 1.0);
      hidden.optimizer().step(gradients);
      plain.optimizer().step(gradients);
      for (std::size_t i = 0; i < plain.size(); ++i) {
        for (int s = 0; s < test::model<Rule, Format>::slots; ++s)
          ASSERT_EQ(hidden.optimizer().moment(i, s), plain.optimizer().moment(i, s));
        for (std::int64_t j = 0; j < plain.tensor(i).count(); ++j)
          ASSERT_EQ(hidden.tensor(i)[j].bits, narrow(plain.tensor(i)[j]).bits)
              << test::name_of(k) << " step " << step << " tensor " << i << " element " << j;
      }
    }
    ASSERT_TRUE(hidden.intact());
  }
  for (auto k : test::all_kinds) test::same_bits_everywhere<Rule, Format, Column>(rule, k);
}

TEST(table_columns, split) {
  is_fp32_behind_the_scenes<memfit::adamw, memfit::float8, split<bf16>>(test::table_adamw);
  is_fp32_behind_the_scenes<memfit::momentum, memfit::fp32, split<bf16>>(test::table_momentum);
}
TEST(table_columns, master) {
  is_fp32_behind_the_scenes<memfit::adamw, memfit::dynamic8, master<bf16>>(test::table_adamw);
  is_fp32_behind_the_scenes<memfit::adam, memfit::float8, master<fp16>>(test::table_adam);
}

}  // namespace
