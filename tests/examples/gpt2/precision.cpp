// Whole runs of gpt2_train in 16 bits, in micro-batches, with loss scales and with clipping: what
// they learn, what must make no difference, and what they say of it.
#include <cmath>
#include <cstdint>
#include <ostream>

#include "records.hpp"

namespace {

using nlohmann::json;
using program::operator+;
using program::records;
using program::words;

// Of small_network.
constexpr std::int64_t parameters = 256 * 64 + 32 * 64 + 12 * 64 * 64 + 13 * 64 + 2 * 64;

class precision : public program::training {
 protected:
  std::vector<json> train(const words& options) { return train_small(options); }

  std::vector<double> losses(const words& options) {
    std::vector<double> all;
    for (auto const& step : train(options)) all.push_back(step.at("loss").get<double>());
    return all;
  }

  double validation(const words& options) {
    return train(options).back().at("val_loss").get<double>();
  }
};

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]) / b[i]);
  return largest;
}

// Four windows at once, in twos, one by one, and in a three and a one, whose means weigh unequally.
TEST_F(precision, micro_batches_of_any_size_have_one_loss_curve) {
  auto const whole = losses({"--steps", "50"});
  for (auto const* size : {"4", "3", "2", "1"}) {
    double const difference =
        largest_difference(losses({"--steps", "50", "--micro-batch", size}), whole);
    EXPECT_LE(difference, 1e-5) << size;
  }
  EXPECT_EQ(losses({"--steps", "50", "--micro-batch", "4"}), whole);
}

TEST_F(precision, micro_batches_need_less_memory_for_activations_and_more_for_sums) {
  auto const whole = train({"--steps", "1"}).front().at("bytes");
  auto const parts = train({"--steps", "1", "--micro-batch", "1"}).front().at("bytes");
  EXPECT_LT(parts.at("activations").get<double>(), 0.3 * whole.at("activations").get<double>());
  EXPECT_EQ(whole.at("gradients"), 4 * parameters);
  EXPECT_EQ(whole.at("sums"), 0);
  EXPECT_EQ(parts.at("gradients"), 4 * parameters);
  EXPECT_EQ(parts.at("sums"), 4 * parameters);
  auto const bf16_sums =
      train({"--steps", "1", "--micro-batch", "1", "--accumulate-in", "bf16"}).front().at("bytes");
  EXPECT_EQ(bf16_sums.at("sums"), 2 * parameters);
}

TEST_F(precision, sums_in_bf16_learn_as_sums_in_fp32) {
  words const options{"--steps", "40", "--micro-batch", "1"};
  double const expected = validation(options);
  double const in_bf16 = validation(options + words{"--accumulate-in", "bf16"});
  EXPECT_NE(in_bf16, expected);
  EXPECT_NEAR(in_bf16, expected, 0.05 * expected);
}

TEST_F(precision, dropout_differs_between_micro_batches) {
  words const options{"--steps", "3", "--dropout", "0.5"};
  EXPECT_NE(losses(options + words{"--micro-batch", "2"}), losses(options));
  EXPECT_EQ(losses(options + words{"--micro-batch", "2"}),
            losses(options + words{"--micro-batch", "2", "--checkpoint", "all"}));
}

struct type {
  const char* name;
  std::int64_t kept;  // beside each parameter
};

class sixteen_bits : public precision, public testing::WithParamInterface<type> {};

TEST_P(sixteen_bits, halve_the_bytes_and_learn_as_fp32) {
  words const options{"--steps", "40"};
  auto const wide = train(options);
  auto const narrow = train(options + words{"--precision", GetParam().name});
  double const expected = wide.back().at("val_loss").get<double>();
  EXPECT_NEAR(narrow.back().at("val_loss").get<double>(), expected, 0.05 * expected);
  auto const bytes = narrow.back().at("bytes");
  EXPECT_EQ(bytes.at("parameters"), 2 * parameters);
  EXPECT_EQ(bytes.at("kept"), GetParam().kept * parameters);
  EXPECT_EQ(bytes.at("gradients"), 2 * parameters);
  EXPECT_EQ(bytes.at("moments"), 8 * parameters);
  EXPECT_LT(bytes.at("activations").get<double>(),
            0.52 * wide.back().at("bytes").at("activations").get<double>());
}

TEST_P(sixteen_bits, go_with_everything_else) {
  words const options{"--steps",         "6",     "--precision",   GetParam().name,
                      "--state",         "root8", "--micro-batch", "3",
                      "--clip-norm",     "0.5",   "--optimizer",   "adam",
                      "--accumulate-in", "bf16",  "--dropout",     "0.1"};
  auto const all = losses(options);
  EXPECT_EQ(losses(options + words{"--checkpoint", "all"}), all);
  EXPECT_LT(all.back(), all.front());
}

void PrintTo(const type& t, std::ostream* to) {
  *to << t.name;
}

INSTANTIATE_TEST_SUITE_P(precision, sixteen_bits, testing::Values(type{"bf16", 2}, type{"fp16", 4}),
                         [](const auto& tested) { return std::string{tested.param.name}; });

TEST_F(precision, corrected_parameters_take_three_bytes_and_learn_as_exact_ones) {
  for (auto const* state : {"fp32", "root8"}) {
    words const options{"--steps", "40", "--precision", "bf16", "--state", state};
    double const expected = validation(options);
    auto const steps = train(options + words{"--parameters", "corrected"});
    EXPECT_NEAR(steps.back().at("val_loss").get<double>(), expected, 0.01 * expected) << state;
    EXPECT_EQ(steps.back().at("bytes").at("kept"), parameters) << state;
  }
}

// Gradients overflow at first: these steps are skipped and the scale falls until they do not.
TEST_F(precision, a_dynamic_loss_scale_backs_off_from_2_to_the_24) {
  words const options{"--steps", "300"};
  double const expected = validation(options);
  auto const steps =
      train(options + words{"--precision", "fp16", "--loss-scale", "dynamic:16777216"});
  EXPECT_NEAR(steps.back().at("val_loss").get<double>(), expected, 0.05 * expected);
  auto const skipped = steps.back().at("skipped").get<int>();
  EXPECT_GE(skipped, 1);
  EXPECT_EQ(steps.back().at("loss_scale").get<double>(), std::ldexp(1.0, 24 - skipped));
  EXPECT_NE(out.find("  skipped " + std::to_string(skipped)), std::string::npos) << out;
}

// The control: the same scale, but fixed.
TEST_F(precision, a_loss_scale_that_is_too_large_and_fixed_skips_every_step) {
  auto const steps =
      train({"--steps", "10", "--precision", "fp16", "--loss-scale", "static:16777216"});
  EXPECT_EQ(steps.back().at("skipped"), 10);
  EXPECT_EQ(steps.back().at("loss_scale"), 16777216);
  EXPECT_NEAR(steps.back().at("val_loss").get<double>(), std::log(256.0), 0.1);
}

// Powers of two are taken out again without rounding.
TEST_F(precision, a_loss_scale_makes_no_difference_in_fp32) {
  EXPECT_EQ(losses({"--steps", "8", "--loss-scale", "static:1024"}), losses({"--steps", "8"}));
  EXPECT_EQ(losses({"--steps", "8", "--loss-scale", "dynamic", "--micro-batch", "3"}),
            losses({"--steps", "8", "--micro-batch", "3"}));
}

TEST_F(precision, clipping_to_a_norm_that_is_never_reached_makes_no_difference) {
  auto const plain = losses({"--steps", "8"});
  EXPECT_EQ(losses({"--steps", "8", "--clip-norm", "1e6"}), plain);
  EXPECT_EQ(losses({"--steps", "8", "--clip-percentile", "100"}), plain);
}

TEST_F(precision, clipping_limits_how_far_a_step_goes) {
  words const sgd{"--steps", "8", "--optimizer", "sgd", "--weight-decay", "0"};
  auto const clipped = train(sgd + words{"--clip-norm", "1e-4"});
  EXPECT_GT(clipped.front().at("gradient_norm").get<double>(), 1e-2);
  auto const still = losses(sgd + words{"--clip-norm", "1e-30"});
  EXPECT_LT(std::abs(clipped.back().at("loss").get<double>() - still.back()), 1e-4);
  EXPECT_GT(std::abs(losses(sgd).back() - still.back()), 1e-4);
  EXPECT_NE(losses(sgd + words{"--clip-percentile", "10"}), losses(sgd));
}

// The norm is that of the mean's gradient, whatever the sums, their weights and the scale.
TEST_F(precision, the_norm_depends_on_neither_micro_batches_nor_scale) {
  auto const norm_with = [&](const words& options) {
    return train(words{"--steps", "1", "--clip-norm", "1"} + options)
        .front()
        .at("gradient_norm")
        .get<double>();
  };
  double const expected = norm_with({});
  EXPECT_NEAR(norm_with({"--micro-batch", "3"}), expected, 1e-5 * expected);
  EXPECT_NEAR(norm_with({"--micro-batch", "1", "--loss-scale", "static:4096"}), expected,
              1e-5 * expected);
  EXPECT_NEAR(norm_with({"--precision", "fp16"}), expected, 1e-2 * expected);
}

TEST_F(precision, a_plain_run_says_nothing_of_scales_and_norms) {
  auto const step = train({"--steps", "1"}).front();
  for (auto const* field : {"loss_scale", "gradient_norm", "skipped"})
    EXPECT_FALSE(step.contains(field)) << field;
  EXPECT_EQ(out.find("scale"), std::string::npos);
}

// A network of three layers, so that a block's gradients are used again.
TEST_F(precision, released_gradients_take_the_memory_of_one_block) {
  words const options{"--layers", "3", "--steps", "1"};
  auto const bytes_with = [&](const words& more) {
    auto sizes = program::small_network(text);
    sizes.erase(sizes.begin(), sizes.begin() + 2);
    auto const r = run(sizes + options + more + words{"--log", log.string()});
    EXPECT_EQ(r.status, 0) << r.err;
    return records(log).front().at("bytes").at("gradients");
  };
  EXPECT_EQ(bytes_with({"--release"}), 4 * parameters);
  EXPECT_EQ(bytes_with({"--release", "--micro-batch", "1", "--clip-norm", "1"}), 4 * parameters);
}

TEST_F(precision, released_gradients_that_overflow_skip_and_back_off) {
  auto const steps = train(
      {"--steps", "20", "--release", "--precision", "fp16", "--loss-scale", "dynamic:16777216"});
  auto const skipped = steps.back().at("skipped").get<int>();
  EXPECT_GE(skipped, 1);
  EXPECT_LT(skipped, 20);
  EXPECT_EQ(steps.back().at("loss_scale").get<double>(), std::ldexp(1.0, 24 - skipped));
}

// What README promises of each technique: how far the losses of all steps may be from those of the
// same run without it. 0: the same bits.
struct technique {
  const char* name;
  words without, with;
  double largest;
};

class every_technique : public precision, public testing::WithParamInterface<technique> {};

TEST_P(every_technique, keeps_to_the_losses_that_it_promises) {
  auto const& [name, without, with, largest] = GetParam();
  words const steps{"--steps", "40"};
  EXPECT_LE(largest_difference(losses(steps + with), losses(steps + without)), largest);
}

const words eight_bits{"--precision", "bf16", "--parameters", "corrected", "--state", "root8"};

INSTANTIATE_TEST_SUITE_P(
    precision, every_technique,
    testing::Values(
        technique{"checkpoint", {}, {"--checkpoint", "all"}, 0},
        technique{"checkpoint_auto", {}, {"--checkpoint", "auto"}, 0},
        technique{"loss_scale", {}, {"--loss-scale", "static:1024"}, 0},
        technique{"micro_batch", {}, {"--micro-batch", "1"}, 1e-5},
        technique{"release", {}, {"--release"}, 0},
        technique{"release_of_eight_bits", eight_bits, eight_bits + words{"--release"}, 0},
        technique{"release_with_loss_scale",
                  {"--precision", "fp16", "--loss-scale", "dynamic:1024"},
                  {"--precision", "fp16", "--loss-scale", "dynamic:1024", "--release"},
                  0},
        technique{
            "release_and_clip", {"--clip-norm", "0.5"}, {"--clip-norm", "0.5", "--release"}, 0.05},
        technique{"release_and_fold", {}, {"--micro-batch", "1", "--release"}, 0.15},
        technique{"fold_into_root8",
                  {"--state", "root8"},
                  {"--state", "root8", "--micro-batch", "1", "--release"},
                  0.15},
        technique{"root8", {}, {"--state", "root8"}, 0.01},
        technique{"float8", {}, {"--state", "float8"}, 0.01},
        technique{"dynamic8", {}, {"--state", "dynamic8"}, 0.01},
        technique{"bf16", {}, {"--precision", "bf16"}, 0.01},
        technique{"fp16", {}, {"--precision", "fp16", "--loss-scale", "dynamic:1024"}, 0.01},
        technique{"corrected_bf16_and_root8", {}, eight_bits, 0.01}),
    [](const auto& tested) { return std::string{tested.param.name}; });

}  // namespace
