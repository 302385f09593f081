// The command line of gpt2_train, checked: whatever holds an `options` can rely on its sizes and
// numbers. Used by main and the trainer.
#pragma once

#include <memfit/scaler.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpointing.hpp"
#include "choices.hpp"
#include "config.hpp"

namespace gpt2 {

// Options that were given, which --fit leaves as they are.
struct fixed_options {
  bool precision = false, state = false, parameters = false, micro_batch = false,
       accumulate_in = false, checkpoint = false;
};

struct options {
  config sizes;
  std::vector<std::filesystem::path> data;
  token_choice tokens = token_choice::bytes;
  index steps = 300, batch = 8, micro_batch = 0, seq = 0, warmup = 20, val_every = 0;
  double lr = 1e-3, weight_decay = 0.1;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, momentum = 0.9;
  device_choice device = device_choice::host;
  rule_choice optimizer = rule_choice::adamw;
  state_choice state = state_choice::fp32;
  precision_choice precision = precision_choice::fp32;
  column_choice parameters = column_choice::exact;
  std::optional<memfit::loss_scaler_options> loss_scale;
  sum_choice accumulate_in = sum_choice::fp32;
  std::optional<double> clip_norm, clip_percentile;
  index seed = 1;
  int threads = 0;
  double dropout = 0;
  checkpoint_choice checkpoint;
  bool release = false;  // of gradients, stage by stage
  bool checkpoint_report = false;
  std::optional<std::filesystem::path> checkpoint_svg;
  std::optional<index> memory_limit;  // of what the run allocates
  std::optional<index> fit;           // what the process may take
  fixed_options fixed;
  std::optional<std::filesystem::path> log, save, resume, captured_gradients;
  std::optional<std::filesystem::path> init, exported;
  index save_every = 0;
  index sample = 0;
  double temperature = 0.8;
};

// What `parse` found: options to train with, or a text (help) to print and stop after.
struct command_line {
  std::optional<options> train;
  std::string text;
};

// Throws user_error where the command line is wrong.
command_line parse(int argc, const char* const* argv);

}  // namespace gpt2
