#include "sample.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "random.hpp"

namespace gpt2 {

namespace {

// Steps, which are streams too, are never negative.
constexpr index sample_stream = -1;

token first_of(const token_format& format) {
  if (format.held == token_choice::bytes) {
    token const line_end = byte_tokens{format.vocabulary}.of('\n');
    return line_end < format.vocabulary ? line_end : token{0};
  }
  return static_cast<token>(format.vocabulary == gpt2_vocabulary ? end_of_text : 0);
}

token pick(std::span<const float> logits, double temperature, random_source& random) {
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
std::vector<token> sample(memory& tokens_in, const token_format& format, index window,
                          model<T>& network, runner<T>& run, const sample_settings& settings) {
  random_source random{settings.seed, sample_stream};
  std::vector<token> seen(static_cast<std::size_t>(window), first_of(format));
  tensor<token> placed{"seen", {window}, tokens_in};
  network.set_batch({1, window}, 0);
  std::vector<float> logits(static_cast<std::size_t>(format.vocabulary));
  auto const drawn = format.held == token_choice::bytes
                         ? std::min<std::size_t>(logits.size(), byte_tokens::count)
                         : logits.size();
  index known = 1;
  std::vector<token> sampled;
  for (index i = 0; i < settings.tokens; ++i) {
    placed.write(0, seen.data(), window);
    run.forward(network, placed.data(), {});
    network.read_logits(known - 1, logits.data());
    token const next = pick(std::span{logits}.first(drawn), settings.temperature, random);
    sampled.push_back(next);
    if (known == window)
      std::rotate(seen.begin(), seen.begin() + 1, seen.end());
    else
      ++known;
    seen[static_cast<std::size_t>(known - 1)] = next;
  }
  return sampled;
}

#define GPT2_SAMPLE(T)                                                                           \
  template std::vector<token> sample(memory&, const token_format&, index, model<T>&, runner<T>&, \
                                     const sample_settings&);

GPT2_SAMPLE(float)
GPT2_SAMPLE(bf16)
GPT2_SAMPLE(fp16)

std::string printable(const std::vector<token>& sampled, const token_format& format) {
  byte_tokens const bytes{format.vocabulary};
  std::string text;
  for (token const t : sampled) {
    if (format.held == token_choice::uint16) {
      (text += text.empty() ? "" : " ") += std::to_string(t);
    } else {
      auto const c = static_cast<char>(bytes.byte_of(t));
      text.push_back((c < ' ' || c > '~') && c != '\n' && c != '\t' ? '.' : c);
    }
  }
  return text;
}

}  // namespace gpt2
