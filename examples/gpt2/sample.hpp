// Text from a trained network, byte by byte.
// Used by the trainer of the GPT-2 example.
#pragma once

#include <string>

#include "model.hpp"

namespace gpt2 {

struct sample_settings {
  index bytes = 0;
  double temperature = 1;
  index seed = 0;
};

// `window` tokens of the past are seen, as many as the activations hold for one sequence.
std::string sample(backend<float>& on, const config& sizes, index window, const weights<float>& w,
                   activations<float>& act, const sample_settings& settings);

// One character per byte: printable ASCII, line ends and tabs as they are, a dot for everything
// else.
std::string printable(std::string text);

}  // namespace gpt2
