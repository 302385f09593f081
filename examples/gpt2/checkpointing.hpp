// Which activations a run keeps: the words of --checkpoint, and the schedule that each stands for.
// Used by the options and the trainer of the GPT-2 example.
#pragma once

#include <memfit/checkpoint/plan/chain.hpp>
#include <memfit/checkpoint/plan/schedule.hpp>

#include <functional>
#include <string>

#include "tensor.hpp"

namespace gpt2 {

enum class checkpoint_kind {
  none,
  selective,
  all,
  sqrt,
  every,
  revolve,
  budget,
  automatic,
  planned
};

using make_schedule = std::function<memfit::checkpoint::schedule(const memfit::checkpoint::chain&)>;

struct checkpoint_choice {
  checkpoint_kind kind = checkpoint_kind::none;
  index number = 0;  // of every:K, revolve:S and budget:BYTES
  double share = 0;  // of budget:P%, of what keeping everything takes; else 0
  std::string text = "none";
  make_schedule planned = {};  // of a plan of --fit

  // Whether the schedule follows from the times of the stages.
  [[nodiscard]] bool needs_times() const {
    return kind == checkpoint_kind::budget || kind == checkpoint_kind::automatic;
  }
};

inline constexpr const char* checkpoint_words =
    "none|selective|all|sqrt|every:K|revolve:S|budget:BYTES|budget:P%|auto";

// Throws user_error for a word that is none of these and for a number that is none. Bytes are
// whole, with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, or without a unit.
checkpoint_choice parse_checkpoint(const std::string& text);

checkpoint_choice planned_checkpoint(make_schedule how);

// The schedule for a chain whose first variants save everything and whose second ones leave out
// what is cheap to compute again; `free_bytes` is asked for auto alone. Throws user_error for a
// budget below the least that works, which it names.
memfit::checkpoint::schedule plan_for(const checkpoint_choice& choice,
                                      const memfit::checkpoint::chain& stages,
                                      const std::function<index()>& free_bytes);

}  // namespace gpt2
