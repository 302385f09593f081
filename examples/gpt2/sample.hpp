// Text from a trained network, token by token.
// Used by the trainer of the GPT-2 example.
#pragma once

#include <string>
#include <vector>

#include "data.hpp"
#include "runner.hpp"

namespace gpt2 {

struct sample_settings {
  index tokens = 0;
  double temperature = 1;
  index seed = 0;
};

// As from the beginning of a line, or, where tokens are numbers, of a text. Of bytes only those
// tokens are drawn that are bytes. `window` tokens of the past are seen; a batch of one such window
// must fit the runner's chain.
template <class T>
std::vector<token> sample(memory& tokens_in, const token_format& format, index window,
                          model<T>& network, runner<T>& run, const sample_settings& settings);

// One character per byte: printable ASCII, line ends and tabs as they are, a dot for everything
// else. Or numbers.
std::string printable(const std::vector<token>& sampled, const token_format& format);

}  // namespace gpt2
