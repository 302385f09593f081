// What memfit_fit tells people to give to gpt2_train is what gpt2_train takes.
#include <gtest/gtest.h>

#include <memfit/fit/plan.hpp>
#include <memfit/fit/transformer.hpp>

#include <string>
#include <vector>

#include "../../../examples/fit/gpt2_options.hpp"
#include "../../../examples/fit/offers.hpp"
#include "../../../examples/gpt2/options.hpp"

namespace {

namespace fit = memfit::fit;

gpt2::options parsed(advice::words words) {
  words.insert(words.begin(), {"gpt2_train", "--model", "small"});
  std::vector<const char*> argv;
  for (auto const& word : words) argv.push_back(word.c_str());
  return *gpt2::parse(static_cast<int>(argv.size()), argv.data()).train;
}

TEST(gpt2_options, of_every_plan_are_taken_and_mean_the_plan) {
  auto const model = fit::transformer(fit::known_model("small"));
  std::size_t taken = 0, left_out = 0;
  for (std::int64_t const mebibytes : {40, 60, 80, 120, 200, 400, 1000})
    for (auto const precision : {fit::precision::exact, fit::precision::bits16}) {
      fit::wanted w{
          .batch = 12, .seq = 100, .precision = precision, .offered = advice::all_offers()};
      for (auto const& p : fit::plans(model, fit::device_named("cpu", mebibytes << 20), w).plans) {
        auto const words = advice::gpt2_options_of(p);
        if (!words) {
          EXPECT_LT(p.precision, fit::precision::bits24);
          ++left_out;
          continue;
        }
        auto const o = parsed(*words);
        auto const& t = p.training;
        EXPECT_EQ(o.batch, 12);
        EXPECT_EQ(o.seq, 100);
        EXPECT_EQ(o.micro_batch, t.micro_batch);
        EXPECT_EQ(name_of(gpt2::states, o.state), t.states.format);
        EXPECT_EQ(o.precision == gpt2::precision_choice::fp32, t.column.element_bytes == 4);
        EXPECT_EQ(o.parameters == gpt2::column_choice::corrected, t.column.kept_bytes == 1);
        EXPECT_EQ(o.accumulate_in == gpt2::sum_choice::bf16,
                  t.accumulation == fit::accumulation::bf16);
        EXPECT_EQ(o.release, t.gradient_release);
        EXPECT_EQ(o.checkpoint.kind == gpt2::checkpoint_kind::none,
                  p.kept == fit::activations::all);
        if (p.kept == fit::activations::checkpoints) {
          EXPECT_EQ(o.checkpoint.number, p.bytes.activations);
        }
        ++taken;
      }
    }
  EXPECT_GT(taken, 30U);
  EXPECT_GT(left_out, 0U);
}

}  // namespace
