// What the estimate asks of a model and of a training configuration.
// Used by the estimate, before it computes anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "memfit/checkpoint/plan/chain.hpp"
#include "memfit/core/error.hpp"
#include "memfit/fit/model.hpp"
#include "memfit/fit/training.hpp"

namespace memfit::fit::detail {

[[noreturn]] inline void refuse(std::string const& why) {
  throw argument_error("memfit::fit::estimate: " + why);
}

inline void require_between(std::string const& what, std::int64_t value, std::int64_t least,
                            std::int64_t most, std::string_view of_most = "") {
  if (value >= least && value <= most) return;
  refuse(what + " is " + std::to_string(value) + ", must be at least " + std::to_string(least) +
         " and at most " + std::to_string(most) + std::string(of_most));
}

/// No negative count, and no sum of bytes of so many elements that 64 bits do not hold.
inline void require_parameters(model const& m) {
  constexpr auto most = INT64_MAX / 64;
  std::int64_t sum = 0;
  std::unordered_map<std::string_view, std::int64_t> known;
  for (auto const& s : m.stages)
    for (auto const& p : s.parameters) {
      auto const name = "elements of '" + p.name + "' in stage '" + s.name + "'";
      require_between("the number of " + name, p.count, 0, most - sum);
      sum += p.count;
      auto const [at, fresh] = known.try_emplace(p.name, p.count);
      if (!fresh && !p.name.empty() && at->second != p.count)
        refuse("there are " + std::to_string(p.count) + ' ' + name + " and " +
               std::to_string(at->second) + " in a stage before");
    }
}

inline void require_model(model const& m) {
  if (m.stages.empty()) refuse("model '" + m.name + "' has no stages");
  if (!m.chain) refuse("model '" + m.name + "' has no chain");
  require_parameters(m);
}

inline void require_states(training const& t) {
  require_between("bytes of an element of column '" + t.column.name + "'", t.column.element_bytes,
                  1, 8);
  require_between("bytes kept beside an element of column '" + t.column.name + "'",
                  t.column.kept_bytes, 0, 8);
  for (auto const& m : t.states.moments)
    if (!m.code_bytes || !m.scale_bytes || !m.exact_bytes)
      refuse("moment '" + m.name + "' of rule '" + t.states.rule + "' does not say what it takes");
}

inline void require_accumulation(training const& t) {
  if (t.accumulation == accumulation::none && t.micro_batch < t.batch)
    refuse("micro_batch is " + std::to_string(t.micro_batch) + " of a batch of " +
           std::to_string(t.batch) + ", so accumulation must not be none");
  if (t.accumulation != accumulation::folded) return;
  if (!t.gradient_release) refuse("accumulation is folded, which needs gradient_release");
  if (!t.states.folds)
    refuse("accumulation is folded, which rule '" + t.states.rule + "' does not do");
}

inline void require_training(training const& t, model const& m) {
  constexpr auto many = INT64_MAX;
  require_between("batch", t.batch, 1, many);
  require_between("micro_batch", t.micro_batch, 1, t.batch, ", the batch");
  require_between("seq", t.seq, 1, many);
  require_between("ranks.data", t.ranks.data, 1, many);
  require_between("ranks.tensor", t.ranks.tensor, 1, many);
  require_between("ranks.pipeline", t.ranks.pipeline, 1, static_cast<std::int64_t>(m.stages.size()),
                  ", the stages of the model");
  require_between("ranks.zero_stage", t.ranks.zero_stage, 0, 3);
  require_states(t);
  require_accumulation(t);
}

inline void require_chain_of(model const& m, checkpoint::chain const& c) {
  if (c.size() != m.stages.size())
    refuse("the chain of model '" + m.name + "' has " + std::to_string(c.size()) + " stages for " +
           std::to_string(m.stages.size()) + " stages of parameters");
}

}  // namespace memfit::fit::detail
