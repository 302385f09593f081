// Mistakes at the command line: one clear line, exit status 2, nothing written.
#include <string>

#include "program.hpp"

namespace {

using program::operator+;
using program::words;
namespace fs = std::filesystem;

struct mistake {
  std::string name;
  words arguments;
  std::string said;
};

class wrong_options : public program::fixture, public testing::WithParamInterface<mistake> {};

TEST_P(wrong_options, are_one_line_and_status_2) {
  auto const r = run(words{"--data", text.string(), "--log", log.string()} + GetParam().arguments);
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(program::lines(r.err), 1) << r.err;
  EXPECT_NE(r.err.find(GetParam().said), std::string::npos) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_FALSE(fs::exists(log));
}

INSTANTIATE_TEST_SUITE_P(
    command_line, wrong_options,
    testing::Values(
        mistake{"unknown_model", {"--model", "huge"}, "tiny, small, gpt2"},
        mistake{"unknown_state",
                {"--state", "int8"},
                "fp32, bf16, root8, dynamic8, float8, linear8, packed4"},
        mistake{"gradients_of_parts",
                {"--micro-batch", "1", "--capture-gradients", "g.bin"},
                "--capture-gradients wants gradients of whole batches"},
        mistake{"unknown_optimizer", {"--optimizer", "lion"}, "adamw, adam, momentum, sgd"},
        mistake{"unknown_device", {"--device", "gpu"}, "host, cuda"},
        mistake{"unknown_option", {"--layer", "2"}, "--layer"},
        mistake{"stray_word", {"--seed", "1", "more"}, "more"},
        mistake{"missing_value", {"--lr"}, "--lr"},
        mistake{"no_layers", {"--layers", "0"}, "--layers is 0"},
        mistake{"negative_layers", {"--layers", "-2"}, "--layers is -2"},
        mistake{
            "sizes_that_do_not_divide", {"--channels", "100", "--heads", "3"}, "--channels 100"},
        mistake{"channels_too_large", {"--channels", "4294967296"}, "--channels"},
        mistake{"channels_beyond_64_bits", {"--channels", "99999999999999999999"}, "--channels"},
        mistake{"window_longer_than_context", {"--context", "32", "--seq", "33"}, "--seq 33"},
        mistake{"empty_window", {"--seq", "0"}, "--seq is 0"},
        mistake{"empty_batch", {"--batch", "0"}, "--batch is 0"},
        mistake{"no_threads", {"--threads", "0"}, "--threads is 0"},
        mistake{"negative_warmup", {"--warmup", "-1"}, "--warmup is -1"},
        mistake{"negative_sample", {"--sample", "-1"}, "--sample is -1"},
        mistake{"negative_seed", {"--seed", "-1"}, "--seed is -1"},
        mistake{"no_steps", {"--steps", "0"}, "--steps is 0"},
        mistake{"steps_with_a_fraction", {"--steps", "1.5"}, "--steps"},
        mistake{"an_option_twice", {"--steps", "1", "--steps", "2"}, "--steps"},
        mistake{"rate_of_zero", {"--lr", "0"}, "--lr is 0"},
        mistake{"rate_that_is_no_number", {"--lr", "fast"}, "--lr"},
        mistake{"rate_of_nan", {"--lr", "nan"}, "--lr is nan"},
        mistake{"infinite_rate", {"--lr", "inf"}, "--lr is inf"},
        mistake{"rate_too_large_for_a_float", {"--lr", "1e300"}, "--lr"},
        mistake{"negative_decay", {"--weight-decay", "-0.1"}, "--weight-decay is -0.1"},
        mistake{"beta_of_one", {"--beta2", "1"}, "--beta2 is 1"},
        mistake{"eps_of_zero", {"--eps", "0"}, "--eps is 0"},
        mistake{"momentum_of_nan", {"--momentum", "nan"}, "--momentum is nan"},
        mistake{"dropout_of_one", {"--dropout", "1"}, "--dropout is 1"},
        mistake{"negative_dropout", {"--dropout", "-0.1"}, "--dropout is -0.1"},
        mistake{"unknown_precision", {"--precision", "fp8"}, "fp32, bf16, fp16"},
        mistake{"state_not_built",
                {"--optimizer", "adam", "--state", "float8"},
                "--optimizer adam with --precision fp32, which have fp32, root8, dynamic8"},
        mistake{"unknown_parameters", {"--parameters", "8"}, "exact, corrected"},
        mistake{"corrected_fp32", {"--parameters", "corrected"}, "needs --precision bf16"},
        mistake{"corrected_with_dynamic8",
                {"--parameters", "corrected", "--precision", "bf16", "--state", "dynamic8"},
                "fp32 or root8"},
        mistake{"unknown_sums", {"--accumulate-in", "fp16"}, "fp32, bf16"},
        mistake{"unknown_scale", {"--loss-scale", "adaptive"}, "dynamic|dynamic:S|static:S|none"},
        mistake{"scale_without_a_number", {"--loss-scale", "static"}, "dynamic|dynamic:S|static:S"},
        mistake{"scale_and_a_bit", {"--loss-scale", "static:8k"}, "'static:8k' is none of"},
        mistake{"scale_of_zero", {"--loss-scale", "dynamic:0"}, "--loss-scale is dynamic:0"},
        mistake{"scale_of_nan", {"--loss-scale", "static:nan"}, "--loss-scale is static:nan"},
        mistake{"infinite_scale", {"--loss-scale", "static:inf"}, "--loss-scale is static:inf"},
        mistake{"scale_beyond_floats", {"--loss-scale", "static:1e60"}, "'static:1e60' is none of"},
        mistake{"empty_micro_batch", {"--micro-batch", "0"}, "--micro-batch is 0"},
        mistake{"micro_batch_above_batch", {"--batch", "4", "--micro-batch", "5"}, "--batch 4"},
        mistake{"norm_of_zero", {"--clip-norm", "0"}, "--clip-norm is 0"},
        mistake{"infinite_norm", {"--clip-norm", "inf"}, "--clip-norm is inf"},
        mistake{"percentile_of_zero", {"--clip-percentile", "0"}, "--clip-percentile is 0"},
        mistake{"percentile_above_100", {"--clip-percentile", "101"}, "--clip-percentile is 101"},
        mistake{"two_ways_to_clip",
                {"--clip-norm", "1", "--clip-percentile", "5"},
                "cannot both be given"},
        mistake{"unknown_checkpoint", {"--checkpoint", "some"}, "none|selective|all|sqrt|every:K"},
        mistake{"empty_checkpoint", {"--checkpoint", ""}, "--checkpoint is ''"},
        mistake{"every_none", {"--checkpoint", "every:"}, "a whole number"},
        mistake{"every_0", {"--checkpoint", "every:0"}, "at least 1"},
        mistake{"every_and_a_bit", {"--checkpoint", "every:1.5"}, "a whole number"},
        mistake{"no_slots", {"--checkpoint", "revolve:-1"}, "at least 1"},
        mistake{"slots_beyond_64_bits",
                {"--checkpoint", "revolve:99999999999999999999"},
                "a whole number"},
        mistake{"budget_of_words", {"--checkpoint", "budget:little"}, "500MB"},
        mistake{"budget_of_nothing", {"--checkpoint", "budget:0"}, "500MB"},
        mistake{"budget_below_zero", {"--checkpoint", "budget:-1GB"}, "500MB"},
        mistake{"budget_in_megabits", {"--checkpoint", "budget:5Mb"}, "500MB"},
        mistake{"budget_beyond_64_bits", {"--checkpoint", "budget:9999999999TB"}, "500MB"},
        mistake{"budget_that_is_no_number", {"--checkpoint", "budget:nan"}, "500MB"},
        mistake{"share_of_nothing", {"--checkpoint", "budget:0%"}, "25%"},
        mistake{"a_report_without_a_place",
                {"--model", "tiny", "--seq", "8", "--checkpoint-report", "/missing/a.svg"},
                "/missing/a.svg"},
        mistake{"saves_to_nowhere", {"--save-every", "5"}, "--save-every needs --save"},
        mistake{"saves_before_it_began",
                {"--save", "saved", "--save-every", "-1"},
                "--save-every is -1"},
        mistake{"released_and_captured",
                {"--release", "--capture-gradients", "g.bin"},
                "--release cannot be given with --capture-gradients"},
        mistake{"released_and_ranked",
                {"--release", "--clip-percentile", "5"},
                "--release cannot be given with --clip-percentile"},
        mistake{"released_and_summed",
                {"--release", "--accumulate-in", "bf16"},
                "--release cannot be given with --accumulate-in"},
        mistake{"folded_too_often",
                {"--release", "--batch", "9", "--micro-batch", "1", "--state", "root8"},
                "at most 8 micro-batches"},
        mistake{"folded_into_momentum",
                {"--release", "--micro-batch", "1", "--optimizer", "momentum"},
                "needs --optimizer adamw or adam"},
        mistake{"frozen_sample", {"--temperature", "0"}, "--temperature is 0"}),
    [](const auto& tested) { return tested.param.name; });

class command_line : public program::fixture {
 protected:
  void expect_refused(const words& arguments, const std::string& said) {
    auto const r = run(words{"--steps", "1"} + arguments);
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(program::lines(r.err), 1) << r.err;
    EXPECT_NE(r.err.find(said), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
  }
};

TEST_F(command_line, help_is_no_mistake) {
  auto const r = run({"--help"});
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.err, "");
  EXPECT_NE(r.out.find("--state"), std::string::npos);
  EXPECT_NE(r.out.find("Ctrl-C"), std::string::npos);
}

TEST_F(command_line, an_impossible_budget_names_the_least_that_works) {
  auto const r = run({"--model", "tiny", "--seq", "16", "--batch", "1", "--steps", "1", "--data",
                      text.string(), "--checkpoint", "budget:1kB", "--log", log.string()});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(program::lines(r.err), 1) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_FALSE(fs::exists(log));
  auto const at = r.err.find("the least that works is ");
  ASSERT_NE(at, std::string::npos) << r.err;
  auto const least = std::stoll(r.err.substr(at + 24));
  for (auto const& [bytes, status] : {std::pair{least, 0}, std::pair{least - 1, 2}})
    EXPECT_EQ(run({"--model", "tiny", "--seq", "16", "--batch", "1", "--steps", "1", "--data",
                   text.string(), "--checkpoint", "budget:" + std::to_string(bytes)})
                  .status,
              status);
}

TEST_F(command_line, cuda_without_a_device_is_refused) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  expect_refused(
      {"--data", text.string(), "--context", "8", "--device", "cuda", "--log", log.string()},
      GPT2_SAID_WITHOUT_DEVICE);
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(command_line, data_shorter_than_a_window_are_refused) {
  program::write(text, "too short");
  expect_refused({"--data", text.string(), "--context", "8", "--log", log.string()}, "too short");
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(command_line, a_held_out_part_shorter_than_a_window_is_refused) {
  program::write(text, std::string(300, 'a'));
  expect_refused({"--data", text.string(), "--context", "31", "--log", log.string()}, "held-out");
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(command_line, missing_data_are_refused) {
  auto const missing = (folder / "missing").string();
  expect_refused({"--data", missing, "--log", log.string()}, missing);
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(command_line, one_missing_file_among_others_is_refused) {
  auto const missing = (folder / "missing").string();
  expect_refused({"--data", text.string(), missing, "--log", log.string()}, missing);
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(command_line, unreadable_data_are_refused) {
  if (geteuid() == 0) GTEST_SKIP() << "every file is readable to root";
  fs::permissions(text, fs::perms::none);
  expect_refused({"--data", text.string()}, text.string());
}

TEST_F(command_line, a_device_is_refused_as_data) {
  expect_refused({"--data", "/dev/zero"}, "neither a file nor a folder");
}

TEST_F(command_line, an_empty_folder_is_refused) {
  auto const empty = folder / "empty";
  fs::create_directory(empty);
  expect_refused({"--data", empty.string()}, empty.string());
}

TEST_F(command_line, a_log_in_a_missing_folder_is_refused) {
  auto const unwritable = (folder / "missing" / "log.jsonl").string();
  expect_refused({"--model", "tiny", "--data", text.string(), "--log", unwritable}, unwritable);
}

TEST_F(command_line, a_folder_is_refused_as_log) {
  expect_refused({"--model", "tiny", "--data", text.string(), "--log", folder.string()}, "log");
}

TEST_F(command_line, an_empty_name_is_refused_as_log) {
  expect_refused({"--model", "tiny", "--data", text.string(), "--log", ""}, "log");
}

TEST_F(command_line, the_data_are_not_overwritten_by_the_log) {
  auto const before = program::read(text);
  auto const link = folder / "link";
  fs::create_symlink(text, link);
  expect_refused({"--model", "tiny", "--data", text.string(), "--log", link.string()}, "log");
  EXPECT_EQ(program::read(text), before);
}

TEST_F(command_line, a_mistake_leaves_an_older_log_alone) {
  program::write(log, "older\n");
  expect_refused({"--data", text.string(), "--log", log.string(), "--lr", "-1"}, "--lr");
  EXPECT_EQ(program::read(log), "older\n");
}

}  // namespace
