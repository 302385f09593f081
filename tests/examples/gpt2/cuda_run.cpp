// Whole runs of gpt2_train on CUDA against the same runs on the host.
#include <cmath>
#include <cstdio>

#include "records.hpp"

namespace {

using nlohmann::json;
using program::operator+;
using program::records;
using program::words;
namespace fs = std::filesystem;

class cuda_run : public program::training {
 protected:
  void SetUp() override {
    fixture::SetUp();
    auto const r = run(words{"--model", "tiny", "--data", text.string(), "--seq", "8", "--batch",
                             "1", "--steps", "1", "--device", "cuda"});
    if (r.err.find("no device answers") != std::string::npos) GTEST_SKIP() << r.err;
  }

  std::vector<json> train(const std::string& device, const words& options) {
    return training::train(options + words{"--device", device});
  }
};

double relative_difference(const json& a, const json& b, const char* field) {
  auto const expected = b.at(field).get<double>();
  return std::abs(a.at(field).get<double>() - expected) / expected;
}

words two_layers(const fs::path& text) {
  auto options = program::small_network(text) + words{"--steps", "5"};
  *(std::find(options.begin(), options.end(), "--layers") + 1) = "2";
  return options;
}

TEST_F(cuda_run, has_the_losses_of_the_host) {
  auto const on_host = train("host", two_layers(text));
  auto const on_cuda = train("cuda", two_layers(text));
  ASSERT_EQ(on_cuda.size(), 5U);
  double largest = 0;
  for (std::size_t i = 0; i < on_cuda.size(); ++i)
    largest = std::max(largest, relative_difference(on_cuda[i], on_host[i], "loss"));
  std::printf("largest relative difference of five losses: %.2g\n", largest);
  EXPECT_LT(largest, 1e-4);
  EXPECT_LT(relative_difference(on_cuda.back(), on_host.back(), "val_loss"), 1e-4);
  for (auto const* category : {"parameters", "gradients", "moments", "activations"})
    EXPECT_EQ(on_cuda.back().at("bytes").at(category), on_host.back().at("bytes").at(category));
  EXPECT_GT(on_cuda.back().at("bytes").at("workspace").get<std::int64_t>(), 0);
}

TEST_F(cuda_run, repeats_itself_to_the_bit) {
  auto const first = train("cuda", two_layers(text) + words{"--sample", "8"});
  auto const sample = out.substr(out.find("sample:\n"));
  auto const again = train("cuda", two_layers(text) + words{"--sample", "8"});
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i].at("loss"), again[i].at("loss"));
  EXPECT_EQ(first.back().at("val_loss"), again.back().at("val_loss"));
  EXPECT_EQ(out.substr(out.find("sample:\n")), sample);
}

TEST_F(cuda_run, has_the_same_bits_with_checkpoints) {
  auto options = two_layers(text) + words{"--dropout", "0.1", "--seq", "16"};
  *(std::find(options.begin(), options.end(), "--steps") + 1) = "2";
  auto const all = train("cuda", options);
  for (auto const* checkpoint : {"selective", "all", "revolve:1"}) {
    auto const some = train("cuda", options + words{"--checkpoint", checkpoint});
    ASSERT_EQ(some.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(some[i].at("loss"), all[i].at("loss"));
    EXPECT_EQ(some.back().at("bytes").at("activations"), some.back().at("planned_activations"));
    EXPECT_LT(some.back().at("planned_activations"), all.back().at("planned_activations"));
  }
}

// Rounding to 16 bits makes more of small differences; the gates' numbers are of the same steps.
TEST_F(cuda_run, has_the_hosts_losses_and_scales_in_16_bits_and_micro_batches) {
  for (auto const& options :
       {words{"--precision", "bf16", "--micro-batch", "3", "--clip-norm", "0.5"},
        words{"--precision", "fp16", "--loss-scale", "dynamic:16777216"},
        words{"--micro-batch", "3", "--accumulate-in", "bf16", "--clip-percentile", "50"}}) {
    auto const steps = program::small_network(text) + words{"--steps", "10"} + options;
    auto const on_host = train("host", steps).back();
    auto const on_cuda = train("cuda", steps).back();
    EXPECT_LT(relative_difference(on_cuda, on_host, "val_loss"), 1e-3) << options[1];
    EXPECT_EQ(on_cuda.value("skipped", -1), on_host.value("skipped", -1)) << options[1];
    EXPECT_EQ(on_cuda.value("loss_scale", 0.0), on_host.value("loss_scale", 0.0)) << options[1];
    for (auto const* category : {"parameters", "gradients", "moments", "activations"})
      EXPECT_EQ(on_cuda.at("bytes").at(category), on_host.at("bytes").at(category)) << options[1];
  }
}

struct choice {
  const char *rule, *state;
};

class cuda_choice : public cuda_run, public testing::WithParamInterface<choice> {};

TEST_P(cuda_choice, trains_as_on_the_host) {
  auto const options =
      program::small_network(text) +
      words{"--steps", "3", "--optimizer", GetParam().rule, "--state", GetParam().state};
  auto const on_host = train("host", options);
  auto const on_cuda = train("cuda", options);
  EXPECT_LT(relative_difference(on_cuda.back(), on_host.back(), "loss"), 1e-3);
  EXPECT_EQ(on_cuda.back().at("bytes").at("moments"), on_host.back().at("bytes").at("moments"));
}

INSTANTIATE_TEST_SUITE_P(cuda_run, cuda_choice,
                         testing::Values(choice{"adamw", "float8"}, choice{"adam", "root8"},
                                         choice{"momentum", "dynamic8"}, choice{"sgd", "linear8"}),
                         [](const auto& tested) { return std::string{tested.param.rule}; });

}  // namespace
