// Text from a trained network, byte by byte.
// Used by the trainer of the GPT-2 example.
#pragma once

#include <string>

#include "runner.hpp"

namespace gpt2 {

struct sample_settings {
  index bytes = 0;
  double temperature = 1;
  index seed = 0;
};

// `window` tokens of the past are seen; a batch of one such window must fit the runner's chain.
template <class T>
std::string sample(memory& tokens_in, const config& sizes, index window, model<T>& network,
                   runner<T>& run, const sample_settings& settings);

// One character per byte: printable ASCII, line ends and tabs as they are, a dot for everything
// else.
std::string printable(std::string text);

}  // namespace gpt2
