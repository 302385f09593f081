// What is known after a step: losses, speed and every byte by category.
// Written by the trainer, read by the progress line and the log.
#pragma once

#include <optional>
#include <string>

#include "budget.hpp"

namespace gpt2 {

struct report {
  index step = 0, steps = 0;
  double loss = 0;
  std::optional<double> val_loss;
  double lr = 0;
  // After the step; where a loss scale or clipping makes them known.
  std::optional<float> loss_scale;
  std::optional<double> gradient_norm;  // unscaled, before it was clipped
  std::optional<index> skipped;         // steps so far
  double tokens_per_s = 0, seconds_left = 0;
  byte_counts bytes;  // the most so far
  index total_bytes = 0, peak_rss = 0;
  std::string checkpoint;  // which activations are kept, as the command line said
  index planned_activations = 0;
};

// The largest resident memory of this process so far.
index peak_rss();

}  // namespace gpt2
