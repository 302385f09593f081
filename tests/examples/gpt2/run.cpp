// Whole runs of gpt2_train: what they learn, log, print and how they end.
#include <sys/ioctl.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "records.hpp"
#include "weights.hpp"

namespace {

using nlohmann::json;
using program::operator+;
using program::records;
using program::words;
namespace fs = std::filesystem;

double last_loss(const std::vector<json>& log) {
  return log.back().at("val_loss").get<double>();
}

class training : public program::training {
 protected:
  std::vector<json> train(const words& options) { return train_small(options); }
};

TEST_F(training, lowers_the_loss) {
  auto const steps = train({"--steps", "30"});
  ASSERT_EQ(steps.size(), 30U);
  EXPECT_NEAR(steps.front().at("loss").get<double>(), std::log(256.0), 0.1);
  EXPECT_LT(steps.back().at("loss").get<double>(), 3.5);
  EXPECT_LT(last_loss(steps), 3.5);
}

TEST_F(training, logs_every_step_with_every_field) {
  auto const steps = train({"--steps", "5", "--val-every", "2"});
  ASSERT_EQ(steps.size(), 5U);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto const& step = steps[i];
    EXPECT_EQ(step.at("step"), i + 1);
    EXPECT_TRUE(std::isfinite(step.at("loss").get<double>()));
    EXPECT_GT(step.at("tokens_per_s").get<double>(), 0);
    EXPECT_GT(step.at("peak_rss").get<std::int64_t>(), 1 << 20);
    EXPECT_EQ(step.contains("val_loss"), i == 1 || i == 3 || i == 4);
    for (auto const* category : {"parameters", "gradients", "moments", "activations", "workspace"})
      EXPECT_GT(step.at("bytes").at(category).get<std::int64_t>(), 0) << category;
  }
}

TEST_F(training, reports_bytes_that_follow_from_the_sizes) {
  constexpr std::int64_t c = 64, context = 32, rows = 4 * 32, heads = 2, seq = 32;
  auto const bytes = train({"--steps", "1"}).front().at("bytes");
  constexpr std::int64_t parameters =
      256 * c + context * c + 12 * c * c + (4 * c + 3 * c + c + 4 * c + c) + 2 * c;
  constexpr std::int64_t squares = 4 * heads * seq * seq;
  constexpr std::int64_t per_block = rows * (4 + (1 + 3 + 1 + 1 + 1 + 4 + 4) * c) + squares;
  constexpr std::int64_t head = rows * (2 + c + 256 + 1);
  EXPECT_EQ(bytes.at("parameters"), 4 * parameters);
  EXPECT_EQ(bytes.at("gradients"), 4 * parameters);
  EXPECT_EQ(bytes.at("moments"), 8 * parameters);
  // At the head's backward pass: what all stages save, two activations, two gradients of such, and
  // that of the head's norm.
  EXPECT_EQ(bytes.at("activations"), 4 * (per_block + head + 5 * rows * c));
  // oneDNN's scratch comes on top.
  EXPECT_GE(bytes.at("workspace"), 2 * 2 * rows);
}

TEST_F(training, repeats_itself_and_does_not_depend_on_threads) {
  auto const first = train({"--steps", "5"});
  auto const again = train({"--steps", "5"});
  auto const options = program::small_network(text);
  auto other = options;
  *(std::find(other.begin(), other.end(), "--threads") + 1) = "3";
  ASSERT_EQ(run(other + words{"--log", log.string(), "--steps", "5"}).status, 0);
  auto const on_three = records(log);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].at("loss"), again[i].at("loss"));
    EXPECT_NEAR(first[i].at("loss").get<double>(), on_three[i].at("loss").get<double>(), 1e-5);
  }
  EXPECT_EQ(last_loss(first), last_loss(again));
}

struct kept {
  std::string name;
  words checkpoint;
};

class every_checkpoint : public training, public testing::WithParamInterface<kept> {};

// With dropout, so that replays draw noise, and with validation and a sample, which draw none.
TEST_P(every_checkpoint, trains_to_the_same_bits_in_the_bytes_it_promises) {
  words const options{"--layers", "5",        "--steps", "4",         "--val-every",
                      "2",        "--sample", "20",      "--dropout", "0.1"};
  auto sizes = program::small_network(text);
  sizes.erase(sizes.begin(), sizes.begin() + 2);
  auto const train_with = [&](const words& checkpoint) {
    auto const r = run(sizes + options + checkpoint + words{"--log", log.string()});
    EXPECT_EQ(r.status, 0) << r.err;
    out = r.out;
    return records(log);
  };
  auto const all = train_with({});
  auto const sample = out.substr(out.find("sample:\n"));
  auto const some = train_with(GetParam().checkpoint);
  EXPECT_EQ(out.substr(out.find("sample:\n")), sample);
  ASSERT_EQ(some.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(some[i].at("loss"), all[i].at("loss"));
    EXPECT_EQ(some[i].value("val_loss", 0.0), all[i].value("val_loss", 0.0));
    EXPECT_EQ(some[i].at("checkpoint"), GetParam().checkpoint.back());
    EXPECT_EQ(some[i].at("planned_activations"), some[i].at("bytes").at("activations"));
  }
  EXPECT_LE(some.back().at("bytes").at("activations"), all.back().at("bytes").at("activations"));
}

INSTANTIATE_TEST_SUITE_P(training, every_checkpoint,
                         testing::Values(kept{"selective", {"--checkpoint", "selective"}},
                                         kept{"all", {"--checkpoint", "all"}},
                                         kept{"sqrt", {"--checkpoint", "sqrt"}},
                                         kept{"every_2", {"--checkpoint", "every:2"}},
                                         kept{"revolve_1", {"--checkpoint", "revolve:1"}},
                                         kept{"half", {"--checkpoint", "budget:50%"}},
                                         kept{"automatic", {"--checkpoint", "auto"}}),
                         [](const auto& tested) { return tested.param.name; });

TEST_F(training, reports_its_schedule_as_text_and_svg) {
  auto const drawn = folder / "schedule.svg";
  train({"--steps", "1", "--checkpoint", "all", "--checkpoint-report", drawn.string()});
  EXPECT_NE(out.find("activations: all, "), std::string::npos) << out;
  EXPECT_NE(out.find("of the time"), std::string::npos) << out;
  EXPECT_TRUE(program::read(drawn).starts_with("<svg")) << program::read(drawn).substr(0, 80);
  auto const with_file = out;
  train({"--checkpoint-report", "--steps", "1", "--checkpoint", "all"});
  EXPECT_GT(program::lines(out), 6);
}

TEST_F(training, takes_folders_and_counts_a_linked_file_once) {
  auto const data = folder / "data";
  fs::create_directories(data / "deeper");
  fs::create_directories(data / ".hidden");
  fs::rename(text, data / "deeper" / "text.txt");
  fs::create_symlink(data / "deeper" / "text.txt", data / "link.txt");
  program::write(data / ".hidden" / "text.txt", "not to be read");
  text = data;
  train({"--steps", "1"});
  EXPECT_NE(out.find("data: 1 files, 10800 bytes to train on, 1200 held out"), std::string::npos)
      << out;
}

TEST_F(training, shows_plain_lines_where_output_is_no_terminal) {
  train({"--steps", "4"});
  EXPECT_NE(out.find("step 1 of 4  loss 5."), std::string::npos) << out;
  EXPECT_NE(out.find("step 4 of 4  loss "), std::string::npos) << out;
  EXPECT_NE(out.find("tokens/s"), std::string::npos);
  EXPECT_NE(out.find(" left  states "), std::string::npos);
  EXPECT_NE(out.find("  peak "), std::string::npos);
  EXPECT_EQ(out.find('\r'), std::string::npos);
  EXPECT_EQ(out.find('\033'), std::string::npos);
}

TEST_F(training, renews_one_line_on_a_terminal) {
  int const terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  winsize narrow{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &narrow), 0);
  std::string shown;
  auto const options = program::small_network(text) + words{"--steps", "6"};
  run_into(ptsname(terminal), folder / "stderr", options, [&](pid_t) {
    char some[4096];
    for (ssize_t n = 0; (n = read(terminal, some, sizeof some)) > 0;)
      shown.append(some, static_cast<std::size_t>(n));
  });
  close(terminal);
  EXPECT_NE(shown.find("\r\033[Kstep 2 of 6  loss "), std::string::npos) << shown;
  EXPECT_NE(shown.find("\r\033[Kstep 6 of 6  loss "), std::string::npos) << shown;
  std::istringstream renewed{shown.substr(shown.find("\033[K"))};
  for (std::string line; std::getline(renewed, line, '\r') && line.find('\n') == line.npos;)
    EXPECT_LT(line.size(), 40 + std::string{"\033[K"}.size()) << line;
}

TEST_F(training, prints_a_sample_of_as_many_bytes_as_asked) {
  train({"--steps", "2", "--sample", "100"});
  auto const at = out.find("sample:\n");
  ASSERT_NE(at, std::string::npos) << out;
  auto const sample = out.substr(at + 8);
  ASSERT_EQ(sample.size(), 101U);
  EXPECT_EQ(sample.back(), '\n');
  for (char c : sample) EXPECT_TRUE((c >= ' ' && c <= '~') || c == '\n' || c == '\t') << int{c};
}

TEST_F(training, ends_cleanly_when_interrupted) {
  auto const options = program::small_network(text) +
                       words{"--steps", "1000000", "--sample", "10", "--log", log.string()};
  auto const r = run(options, [&](pid_t child) {
    EXPECT_TRUE(wait_until([&] { return program::lines(program::read(log)) >= 2; }));
    kill(child, SIGINT);
  });
  EXPECT_EQ(r.status, 130);
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(program::read(log).back(), '\n');
  auto const steps = records(log);
  EXPECT_EQ(steps.back().at("step"), steps.size());
  EXPECT_NE(r.out.find("interrupted"), std::string::npos);
  EXPECT_NE(r.out.find(std::to_string(steps.size()) + " steps in"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("sample:\n"), std::string::npos);
}

TEST_F(training, stops_with_one_line_when_the_loss_is_lost) {
  auto options = program::small_network(text);
  *(std::find(options.begin(), options.end(), "--lr") + 1) = "1e30";
  auto const r = run(options + words{"--steps", "20", "--optimizer", "sgd"});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(program::lines(r.err), 1);
  EXPECT_NE(r.err.find("--lr"), std::string::npos) << r.err;
}

TEST_F(training, stops_with_one_line_when_the_log_cannot_grow) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  auto const r = run(program::small_network(text) + words{"--steps", "2", "--log", "/dev/full"});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(program::lines(r.err), 1);
  EXPECT_NE(r.err.find("/dev/full"), std::string::npos) << r.err;
}

// The short form of bench/quality.py.
TEST_F(training, ends_as_well_with_small_states) {
  words const options{"--steps", "60", "--clip-norm", "1"};
  double const exact = last_loss(train_small(options + words{"--state", "fp32"}));
  EXPECT_NEAR(last_loss(train_small(options + words{"--state", "root8"})), exact, 0.02 * exact);
  words const corrected{"--state", "root8", "--precision", "bf16", "--parameters", "corrected"};
  EXPECT_NEAR(last_loss(train_small(options + corrected)), exact, 0.02 * exact);
  EXPECT_LT(last_loss(train_small(options + words{"--state", "packed4"})), 1.2 * exact);
}

struct interrupted_run {
  std::string name;
  words options;
};

class every_resumed_run : public training, public testing::WithParamInterface<interrupted_run> {};

// All of the warm-up, so that the learning rate does not depend on the number of steps.
TEST_P(every_resumed_run, goes_on_bit_for_bit) {
  auto options = program::small_network(text) + GetParam().options;
  *(std::find(options.begin(), options.end(), "--warmup") + 1) = "6";
  auto const file = [this](const char* name) { return (folder / name).string(); };
  auto const run_to = [&](const char* steps, const words& more) {
    auto const r = run(options + words{"--steps", steps, "--log", log.string()} + more);
    EXPECT_EQ(r.status, 0) << r.err;
    out = r.out;
    return records(log);
  };
  auto const whole = run_to("6", {"--save", file("whole")});
  run_to("3", {"--save", file("half")});
  auto const rest = run_to("6", {"--resume", file("half"), "--save", file("resumed")});
  EXPECT_NE(out.find("resumed: after step 3"), std::string::npos) << out;
  ASSERT_EQ(whole.size(), 6U);
  ASSERT_EQ(rest.size(), 3U);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i].at("step"), i + 4);
    for (auto const* field : {"loss", "lr", "loss_scale", "gradient_norm", "skipped", "val_loss"})
      EXPECT_EQ(rest[i].value(field, json{}), whole[i + 3].value(field, json{})) << field;
  }
  EXPECT_TRUE(program::read(file("resumed")) == program::read(file("whole")));
  EXPECT_FALSE(program::read(file("half")) == program::read(file("whole")));
}

INSTANTIATE_TEST_SUITE_P(
    training, every_resumed_run,
    testing::Values(interrupted_run{"fp32", {}},
                    interrupted_run{"root8_dropout_and_percentile",
                                    {"--state", "root8", "--dropout", "0.1", "--clip-percentile",
                                     "30", "--optimizer", "adam"}},
                    interrupted_run{"bf16_in_parts",
                                    {"--precision", "bf16", "--state", "dynamic8", "--micro-batch",
                                     "3", "--accumulate-in", "bf16"}},
                    interrupted_run{
                        "folded_and_clipped_by_the_step_before",
                        {"--release", "--micro-batch", "3", "--clip-norm", "0.5", "--precision",
                         "bf16", "--parameters", "corrected", "--state", "root8"}},
                    interrupted_run{"fp16_with_skipped_steps",
                                    {"--precision", "fp16", "--loss-scale", "dynamic:1e6",
                                     "--optimizer", "momentum"}}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(training, saves_when_interrupted_and_now_and_then) {
  auto const saved = folder / "saved";
  auto const r =
      run(program::small_network(text) + words{"--steps", "1000000", "--save", saved.string(),
                                               "--save-every", "2", "--log", log.string()},
          [&](pid_t child) {
            EXPECT_TRUE(wait_until([&] { return fs::exists(saved); }));
            kill(child, SIGINT);
          });
  EXPECT_EQ(r.status, 130);
  auto const steps = std::ssize(records(log));
  EXPECT_GE(steps, 2);
  auto const next = std::to_string(steps + 1);
  auto const rest = train({"--steps", next, "--resume", saved.string()});
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].at("step"), steps + 1);
}

TEST_F(training, refuses_to_resume_or_save_in_one_line) {
  auto const saved = (folder / "saved").string();
  train({"--steps", "2", "--save", saved});
  auto const before = program::read(saved);
  struct mistake {
    words options;
    std::string said;
  };
  for (auto const& [options, said] : std::vector<mistake>{
           {{"--resume", saved, "--steps", "2"}, "has taken 2 steps"},
           {{"--resume", saved, "--state", "bf16"}, "'fp32' in the file, expected 'bf16'"},
           {{"--resume", saved, "--optimizer", "adam"}, "optimizer.rule"},
           {{"--resume", saved, "--precision", "bf16"}, "'wte'"},
           {{"--resume", saved + "none"}, "No such file"},
           {{"--resume", text.string()}, "text.txt"},
           {{"--save", (folder / "none" / "saved").string()}, "--save"},
           {{"--save", text.string()}, "one of the files to train on"},
           {{"--save", folder.string()}, "no regular file"}}) {
    auto const r = run(program::small_network(text) + options);
    EXPECT_EQ(r.status, 2) << said;
    EXPECT_EQ(program::lines(r.err), 1) << r.err;
    EXPECT_NE(r.err.find(said), std::string::npos) << r.err;
  }
  auto other = program::small_network(text) + words{"--steps", "9", "--resume", saved};
  *(std::find(other.begin(), other.end(), "--seed") + 1) = "12";
  auto const r = run(other);
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.err.find("gpt2.seed is '11'"), std::string::npos) << r.err;
  EXPECT_TRUE(program::read(saved) == before);
}

struct choice {
  std::string rule;
  std::int64_t slots;
  std::string state;
  std::int64_t bits, block, scale_bytes;

  std::int64_t bytes(std::int64_t n) const {
    return (bits * n + 7) / 8 + scale_bytes * ((n + block - 1) / block);
  }
};

class every_choice : public training, public testing::WithParamInterface<choice> {};

TEST_P(every_choice, trains_with_the_bytes_it_promises) {
  auto const& chosen = GetParam();
  std::int64_t expected = 0;
  gpt2::weights<float> sizes{{.layers = 1, .heads = 2, .channels = 64, .context = 32}};
  for (auto const* t : sizes.all()) {
    bool const quantized = t->size() >= 4096;
    expected += chosen.slots * (quantized ? chosen.bytes(t->size()) : 4 * t->size());
  }
  auto const steps = train({"--steps", "3", "--optimizer", chosen.rule, "--state", chosen.state});
  auto const& bytes = steps.back().at("bytes");
  EXPECT_EQ(bytes.at("moments").get<std::int64_t>() + bytes.at("scales").get<std::int64_t>(),
            expected);
  EXPECT_LT(steps.back().at("loss").get<double>(), steps.front().at("loss").get<double>());
}

std::vector<choice> choices() {
  std::vector<choice> all;
  for (auto const& [rule, slots] :
       std::map<std::string, std::int64_t>{{"momentum", 1}, {"adam", 2}, {"adamw", 2}})
    for (auto const& c : {choice{rule, slots, "fp32", 32, 1, 0},
                          {rule, slots, "root8", 8, 128, 2},
                          {rule, slots, "dynamic8", 8, 256, 4}})
      all.push_back(c);
  for (auto const& c : {choice{"adamw", 2, "bf16", 16, 1, 0},
                        {"adamw", 2, "float8", 8, 256, 4},
                        {"adamw", 2, "linear8", 8, 256, 4},
                        {"adamw", 2, "packed4", 4, 64, 2},
                        {"sgd", 0, "fp32", 32, 1, 0}})
    all.push_back(c);
  return all;
}

INSTANTIATE_TEST_SUITE_P(training, every_choice, testing::ValuesIn(choices()),
                         [](const auto& tested) {
                           return tested.param.rule + "_" + tested.param.state;
                         });

}  // namespace
