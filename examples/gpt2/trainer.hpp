// A whole training run as the options ask for it: data, network, optimizer, steps, validation, log,
// sample. Used by main.
#pragma once

#include "options.hpp"

namespace gpt2 {

enum class outcome { finished, interrupted };

// Throws user_error before anything is written where the run cannot begin.
outcome train(const options& o);

// Rises from lr / warmup to lr over the warm-up, then falls along a cosine to a tenth of it in the
// last step.
double learning_rate(const options& o, index step);

}  // namespace gpt2
