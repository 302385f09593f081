// What a run takes is what was estimated before, its budget counts all of it and passes no limit,
// and --fit finds what fits.
#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <tuple>

#include "budget.hpp"
#include "counted_memory.hpp"
#include "device.hpp"
#include "fitting.hpp"
#include "records.hpp"

namespace {

using gpt2::category;
using gpt2::index;
using program::operator+;
using program::words;

#ifdef GPT2_LARGE
constexpr int runs = 30;
constexpr index scale = 8;  // of channels and windows
#else
constexpr int runs = 5;
constexpr index scale = 4;
#endif

constexpr index plenty = index{1} << 40;

TEST(budget, counts_by_category_what_is_in_use_and_the_most_that_was) {
  gpt2::budget counts;
  gpt2::counted_memory sums{gpt2::host_memory(), counts, category::sums};
  {
    gpt2::tensor<float> const a{"a", {10}, sums}, b{"b", {3}, sums};
    gpt2::reservation const other{counts, category::workspace, 7};
    EXPECT_EQ(counts.in_use()[category::sums], 52);
    EXPECT_EQ(counts.in_use().total(), 59);
  }
  gpt2::tensor<float> const c{"c", {5}, sums};
  EXPECT_EQ(counts.in_use().total(), 20);
  EXPECT_EQ(counts.peak()[category::sums], 52);
  EXPECT_EQ(counts.peak_total(), 59);
}

TEST(budget, refuses_what_passes_its_limit_and_says_what_is_where) {
  gpt2::budget counts{100};
  gpt2::counted_memory moments{gpt2::host_memory(), counts, category::moments};
  gpt2::tensor<char> const whole{"whole", {60}, moments};
  gpt2::reservation const rest{counts, category::scales, 40};
  try {
    gpt2::reservation const more{counts, category::activations, 1};
    FAIL();
  } catch (const gpt2::user_error& refused) {
    std::string const said = refused.what();
    for (auto const* part : {"--memory-limit 100", "activations want 1 byte", "0 are left",
                             "moments 60 B", "scales 40 B"})
      EXPECT_NE(said.find(part), std::string::npos) << part << " in: " << said;
  }
  EXPECT_EQ(counts.peak_total(), 100);
  EXPECT_THROW((gpt2::tensor<char>{"more", {1}, moments}), gpt2::user_error);
  EXPECT_EQ(counts.in_use().total(), 100);
}

TEST(budget, counts_what_memfit_allocates_by_what_it_is_for_and_gets_it_back) {
  gpt2::budget counts;
  auto const on = gpt2::open_host<memfit::bf16>(1, counts);
  gpt2::weights<memfit::bf16> w{{.layers = 1, .heads = 1, .channels = 64, .context = 8}};
  index const before = counts.in_use().total();
  {
    auto const made = on->make_optimizer({.state = gpt2::state_choice::root8}, w);
    index const elements = w.bytes() / 2;
    EXPECT_EQ(counts.in_use()[category::kept], 2 * elements);
    EXPECT_GT(counts.in_use()[category::moments], 2 * elements);  // small tensors' have 4 bytes
    EXPECT_GT(counts.in_use()[category::scales], 0);
  }
  EXPECT_EQ(counts.in_use().total(), before);
}

gpt2::options options_of(words arguments) {
  arguments.insert(arguments.begin(), "gpt2_train");
  std::vector<const char*> argv;
  for (auto const& word : arguments) argv.push_back(word.c_str());
  return *gpt2::parse(static_cast<int>(argv.size()), argv.data()).train;
}

// Whatever the command line offers.
class random_run {
 public:
  explicit random_run(unsigned seed) : random_{seed} {}

  words operator()(const std::string& text) {
    index const heads = one_of({1, 2, 4});
    index const batch = number(1, 5);
    std::string const precision = one_of<std::string>({"fp32", "bf16", "fp16"});
    words all{"--data", text, "--seed", "3", "--steps", "2", "--threads", "2"};
    auto const add = [&](const char* option, const std::string& value) {
      all.insert(all.end(), {option, value});
    };
    add("--heads", std::to_string(heads));
    add("--channels", std::to_string(heads * scale * one_of({8, 20, 32})));
    add("--layers", std::to_string(number(1, 4)));
    add("--context", std::to_string(32 * scale));
    add("--seq", std::to_string(number(1, 32) * scale));
    add("--batch", std::to_string(batch));
    add("--micro-batch", std::to_string(number(1, batch)));
    if (number(0, 3) == 0)
      all.emplace_back("--release");
    else
      add("--accumulate-in", one_of<std::string>({"fp32", "bf16"}));
    add("--precision", precision);
    if (precision == "bf16" && number(0, 1) == 1) {
      add("--parameters", "corrected");
      add("--state", one_of<std::string>({"fp32", "root8"}));
    } else {
      add("--state", precision == "fp32"
                         ? one_of<std::string>({"fp32", "bf16", "root8", "float8", "packed4"})
                         : one_of<std::string>({"fp32", "root8", "dynamic8"}));
    }
    add("--checkpoint",
        one_of<std::string>({"none", "selective", "all", "sqrt", "every:2", "revolve:2"}));
    if (number(0, 2) == 0) add("--clip-norm", "1");
    return all;
  }

 private:
  index number(index least, index most) {
    return std::uniform_int_distribution<index>{least, most}(random_);
  }
  template <class T = index>
  T one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(number(0, std::ssize(all) - 1))];
  }

  std::mt19937 random_;
};

std::string joined(const words& all) {
  std::string text;
  for (auto const& word : all) text += word + " ";
  return text;
}

class fitting : public program::training {
 protected:
  gpt2::byte_counts estimate(const words& run) const {
    return gpt2::estimated(options_of(run), {2 * 12000, plenty});
  }
};

TEST_F(fitting, estimates_are_the_bytes_of_a_run) {
  random_run next{7};
  for (int i = 0; i < runs; ++i) {
    auto const run = next(text.string());
    SCOPED_TRACE(joined(run));
    auto const expected = estimate(run);
    auto const steps = train(run);
    ASSERT_FALSE(steps.empty());
    auto const& last = steps.back();
    auto const& bytes = last.at("bytes");
    for (auto const of : {category::parameters, category::kept, category::gradients, category::sums,
                          category::moments, category::scales}) {
      auto const& name = gpt2::category_names[static_cast<std::size_t>(of)];
      EXPECT_EQ(bytes.at(std::string{name}), expected[of]) << name;
    }
    auto const activations = static_cast<double>(expected[category::activations]);
    EXPECT_NEAR(bytes.at("activations").get<double>(), activations, 0.02 * activations);
    auto const total = static_cast<double>(expected.total());
    EXPECT_LE(bytes.at("total").get<double>(), 1.02 * total + gpt2::scratch_bytes);
    EXPECT_LE(last.at("peak_rss").get<double>(), 1.02 * total + gpt2::process_bytes);
    EXPECT_GE(last.at("peak_rss").get<double>(), 0.98 * total);
  }
}

// The first that fits runs in the bytes that it is given.
TEST_F(fitting, finds_ways_that_fit) {
  random_run next{11};
  for (int i = 0; i < runs; ++i) {
    auto run = next(text.string());
    auto const at = [&](const char* option) { return std::find(run.begin(), run.end(), option); };
    for (auto const* option : {"--micro-batch", "--accumulate-in", "--precision", "--state",
                               "--checkpoint", "--parameters"})
      if (auto const found = at(option); found != run.end()) run.erase(found, found + 2);
    auto const share = 0.5 + 0.1 * (i % 5);
    auto const bytes = gpt2::process_bytes + 2 * gpt2::scratch_bytes +
                       static_cast<index>(share * static_cast<double>(estimate(run).total()));
    SCOPED_TRACE(joined(run) + std::to_string(bytes));
    auto const steps = train(run + words{"--fit", std::to_string(bytes)});
    ASSERT_FALSE(steps.empty());
    EXPECT_LE(steps.back().at("peak_rss").get<index>(), bytes);
    EXPECT_NE(out.find("estimate: parameters"), std::string::npos) << out;
  }
}

// What memfit_fit says of a model and a batch in so many bytes.
nlohmann::json advice(const std::string& question, index bytes) {
  auto const command = std::string{MEMFIT_FIT} + " --json --top 1000 " + question + " --memory " +
                       std::to_string(bytes);
  std::unique_ptr<FILE, int (*)(FILE*)> const out{popen(command.c_str(), "r"), pclose};
  return nlohmann::json::parse(out.get());
}

// Plans run within their own figures, two hundredths and what products work in.
TEST_F(fitting, plans_of_memfit_fit_run_in_what_they_say) {
  constexpr std::array questions{std::tuple{"small", "4", "64"}, std::tuple{"small", "6", "32"},
                                 std::tuple{"tiny", "16", "8"}};
  for (int i = 0; i < runs; ++i) {
    auto const& [model, batch, seq] = questions[static_cast<std::size_t>(i) % questions.size()];
    auto const question = std::string{"--model "} + model + " --batch " + batch + " --seq " + seq;
    auto const plain = advice(question, plenty).at("plain").at("bytes").at("total").get<index>();
    auto plans = advice(question, plain / 10 * (10 - i % 7)).at("plans");
    std::erase_if(plans.get_ref<nlohmann::json::array_t&>(),
                  [](const auto& plan) { return plan.at("gpt2_train").is_null(); });
    ASSERT_FALSE(plans.empty()) << question;
    auto const& plan = plans[static_cast<std::size_t>(i) % plans.size()];
    auto const limit = plan.at("bytes").at("total").get<index>() / 50 * 51 + gpt2::scratch_bytes;
    auto const run = words{"--model", model, "--data", text.string(), "--steps", "1"} +
                     plan.at("gpt2_train").get<words>() +
                     words{"--memory-limit", std::to_string(limit)};
    SCOPED_TRACE(joined(run));
    auto const steps = train(run);
    ASSERT_FALSE(steps.empty());
    EXPECT_LE(steps.back().at("bytes").at("total").get<index>(), limit);
  }
}

TEST_F(fitting, leaves_what_is_given_as_it_is) {
  auto const given = options_of(words{"--data", text.string(), "--fit", "200MB", "--state",
                                      "packed4", "--micro-batch", "3", "--checkpoint", "all"});
  auto const chosen = gpt2::fitted(given, {0, plenty}).chosen;
  EXPECT_EQ(chosen.state, gpt2::state_choice::packed4);
  EXPECT_EQ(chosen.precision, gpt2::precision_choice::fp32);
  EXPECT_EQ(chosen.micro_batch, 3);
  EXPECT_EQ(chosen.checkpoint.kind, gpt2::checkpoint_kind::all);
  EXPECT_EQ(chosen.memory_limit, 200'000'000 - gpt2::process_bytes);
}

TEST_F(fitting, plans_with_the_limit_and_with_its_own_schedule_for_auto) {
  auto const limited = options_of(words{"--data", text.string(), "--fit", "1GiB", "--memory-limit",
                                        "120MB", "--checkpoint", "auto"});
  auto const chosen = gpt2::fitted(limited, {0, plenty}).chosen;
  EXPECT_EQ(chosen.memory_limit, 120'000'000);
  EXPECT_NE(chosen.checkpoint.kind, gpt2::checkpoint_kind::automatic);
  EXPECT_LE(gpt2::estimated(chosen, {0, plenty}).total(), 120'000'000);
}

TEST_F(fitting, finds_ways_for_rules_without_moments_too) {
  auto const given = options_of(words{"--data", text.string(), "--fit", "1GiB", "--optimizer",
                                      "sgd", "--state", "root8", "--release"});
  EXPECT_TRUE(gpt2::fitted(given, {0, plenty}).chosen.release);
}

TEST_F(fitting, refuses_what_cannot_fit_before_it_begins) {
  auto const xl = words{"--data", text.string(), "--model", "gpt2-xl", "--log", log.string()};
  for (auto const& [more, said] :
       std::vector<std::pair<words, std::string>>{{{"--memory-limit", "4GB"}, "--fit BYTES"},
                                                  {{"--fit", "4GB"}, "the least takes"},
                                                  {{"--fit", "1MB"}, "the program itself takes"}}) {
    auto const r = run(xl + more);
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(program::lines(r.err), 1) << r.err;
    EXPECT_NE(r.err.find(said), std::string::npos) << r.err;
    EXPECT_FALSE(std::filesystem::exists(log));
  }
}

}  // namespace
