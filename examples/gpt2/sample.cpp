#include "sample.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace gpt2 {

namespace {

// Steps, which are streams too, are never negative.
constexpr index sample_stream = -1;

token pick(const float* logits, index vocabulary, double temperature, random_source& random) {
  float const largest = *std::max_element(logits, logits + vocabulary);
  std::vector<double> cumulative;
  double sum = 0;
  for (index i = 0; i < vocabulary; ++i)
    cumulative.push_back(
        sum +=
        std::exp((static_cast<double>(logits[i]) - static_cast<double>(largest)) / temperature));
  auto const chosen =
      std::upper_bound(cumulative.begin(), cumulative.end() - 1, random.uniform() * sum);
  return static_cast<token>(chosen - cumulative.begin());
}

}  // namespace

std::string sample(context& ctx, const config& sizes, index window, const weights<float>& w,
                   activations<float>& act, const sample_settings& settings) {
  random_source random{settings.seed, sample_stream};
  std::vector<token> seen(static_cast<std::size_t>(window), token{'\n'});
  index known = 1;
  std::string text;
  for (index i = 0; i < settings.bytes; ++i) {
    forward(ctx, sizes, {1, window}, seen.data(), w, act);
    float const* const logits = act.head.logits.data() + (known - 1) * sizes.vocabulary;
    token const next = pick(logits, sizes.vocabulary, settings.temperature, random);
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
