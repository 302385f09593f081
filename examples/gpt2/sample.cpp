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

template <class T>
std::string sample(memory& tokens_in, const config& sizes, index window, model<T>& network,
                   runner<T>& run, const sample_settings& settings) {
  random_source random{settings.seed, sample_stream};
  std::vector<token> seen(static_cast<std::size_t>(window), token{'\n'});
  tensor<token> placed{"seen", {window}, tokens_in};
  network.set_batch({1, window}, 0);
  std::vector<float> logits(static_cast<std::size_t>(sizes.vocabulary));
  index known = 1;
  std::string text;
  for (index i = 0; i < settings.bytes; ++i) {
    placed.write(0, seen.data(), window);
    run.forward(network, placed.data(), {});
    network.read_logits(known - 1, logits.data());
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

#define GPT2_SAMPLE(T)                                                              \
  template std::string sample(memory&, const config&, index, model<T>&, runner<T>&, \
                              const sample_settings&);

GPT2_SAMPLE(float)
GPT2_SAMPLE(bf16)
GPT2_SAMPLE(fp16)

std::string printable(std::string text) {
  for (char& c : text)
    if ((c < ' ' || c > '~') && c != '\n' && c != '\t') c = '.';
  return text;
}

}  // namespace gpt2
