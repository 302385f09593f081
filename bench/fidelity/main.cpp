// How well each rule with each format stays on its exact path, on the gradients of a real run:
//   bench_fidelity GRADIENTS [STEPS [ELEMENTS [RULE…]]]
// Replays STEPS steps (300) of the first ELEMENTS (16384) elements of each tensor. Prints a table
// per rule; `designs` as a rule stands for other formats of 4 and 8 bits under AdamW.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "contests.hpp"
#include "recording.hpp"

namespace {

using namespace memfit::bench;

constexpr double lr = 1e-3;

struct settings {
  std::string path;
  std::int64_t steps = 300, elements = 16384;
  std::vector<std::string> rules;
};

settings parse(int argc, char** argv) {
  if (argc < 2)
    throw std::runtime_error("usage: bench_fidelity GRADIENTS [STEPS [ELEMENTS [RULE…]]]");
  settings s;
  s.path = argv[1];
  if (argc > 2) s.steps = std::atoll(argv[2]);
  if (argc > 3) s.elements = std::atoll(argv[3]);
  if (s.steps < 1 || s.elements < 1)
    throw std::runtime_error("steps and elements are numbers above 0");
  s.rules.assign(argv + std::min(argc, 4), argv + argc);
  return s;
}

/// Per tensor and candidate.
using results = std::vector<std::vector<deviation>>;

results replay(contest const& of, recording& from, std::int64_t steps) {
  std::vector<tensor_contest> running;
  for (auto const& t : from.tensors()) running.emplace_back(of, t.count, lr);
  std::vector<float> gradient;
  for (std::int64_t step = 1; step <= steps; ++step) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (!from.next(from.tensors()[i], gradient))
        throw std::runtime_error("the recording ends before step " + std::to_string(step));
      running[i].step(gradient, step);
    }
  }
  results all;
  for (auto const& r : running) all.push_back(r.result());
  return all;
}

void print(contest const& of, recording const& from, results const& all) {
  std::printf("\n### %s\n\n| format | bytes | update | path | largest / lr |", of.rule.c_str());
  for (auto const& t : from.tensors()) std::printf(" %s |", t.name.c_str());
  std::printf("\n| --- | ---: | ---: | ---: | ---: |");
  for (std::size_t i = 0; i < all.size(); ++i) std::printf(" ---: |");
  std::printf("\n");
  for (std::size_t c = 0; c < of.candidates.size(); ++c) {
    deviation sum;
    for (auto const& tensor : all) sum += tensor[c];
    std::printf("| %s | %.3f | %.2g | %.2g | %.2g |", of.candidates[c].name.c_str(),
                of.candidates[c].bytes, sum.update(), sum.path(), sum.largest);
    for (auto const& tensor : all)
      std::printf(" %.2g, %.2g |", tensor[c].path(), tensor[c].largest);
    std::printf("\n");
  }
  std::fflush(stdout);
}

std::vector<contest> all_contests() {
  using namespace memfit;
  return {contest_of<adamw>(),   contest_of<amsgradw>(), contest_of<nadam>(),
          contest_of<radam>(),   contest_of<ademamix>(), contest_of<rmsprop>(),
          contest_of<adagrad>(), contest_of<momentum>(), contest_of<lion>(),
          contest_of<signum>(),  contest_of_designs()};
}

bool wanted(settings const& s, contest const& c) {
  auto const name = c.rule == "adamw in double" ? "designs" : c.rule;
  return s.rules.empty() || std::find(s.rules.begin(), s.rules.end(), name) != s.rules.end();
}

}  // namespace

int main(int argc, char** argv) try {
  auto const s = parse(argc, argv);
  for (auto const& c : all_contests()) {
    if (!wanted(s, c)) continue;
    recording from(s.path, s.elements);
    print(c, from, replay(c, from, s.steps));
  }
} catch (std::exception const& failed) {
  std::fprintf(stderr, "bench_fidelity: %s\n", failed.what());
  return 1;
}
