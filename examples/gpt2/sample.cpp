#include "sample.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace gpt2 {

namespace {

// Steps, which are streams too, are never negative.
constexpr index sample_stream = -1;

token pick(const std::vector<float>& logits, double temperature, random_source& random) {
  auto const largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> cumulative;
  double sum = 0;
  for (float const logit : logits)
    cumulative.push_back(sum += std::exp((static_cast<double>(logit) - largest) / temperature));
  auto const chosen =
      std::upper_bound(cumulative.begin(), cumulative.end() - 1, random.uniform() * sum);
  return static_cast<token>(chosen - cumulative.begin());
}

}  // namespace

std::string sample(backend<float>& on, const config& sizes, index window, const weights<float>& w,
                   activations<float>& act, const sample_settings& settings) {
  random_source random{settings.seed, sample_stream};
  std::vector<token> seen(static_cast<std::size_t>(window), token{'\n'});
  tensor<token> placed{"seen", {window}, on.own_memory()};
  std::vector<float> logits(static_cast<std::size_t>(sizes.vocabulary));
  index known = 1;
  std::string text;
  for (index i = 0; i < settings.bytes; ++i) {
    placed.write(0, seen.data(), window);
    forward(on, sizes, {1, window}, placed.data(), w, act);
    act.head.logits.read((known - 1) * sizes.vocabulary, logits.data(), sizes.vocabulary);
    token const next = pick(logits, settings.temperature, random);
    text.push_back(static_cast<char>(next));
    if (known == window)
      std::rotate(seen.begin(), seen.begin() + 1, seen.end());
    else
      ++known;
    seen[static_cast<std::size_t>(known - 1)] = next;
  }
  return text;
}

std::string printable(std::string text) {
  for (char& c : text)
    if ((c < ' ' || c > '~') && c != '\n' && c != '\t') c = '.';
  return text;
}

}  // namespace gpt2
