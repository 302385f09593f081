// The schedules under which the network of the GPT-2 example is tested: every planner, and every
// variant of a block. Used by the tests of its gradients, on the host and on CUDA.
#pragma once

#include <memfit/checkpoint/plan.hpp>

#include <string>
#include <vector>

#include "checkpointing.hpp"

namespace schedules {

inline memfit::checkpoint::schedule of(const std::string& word,
                                       const memfit::checkpoint::chain& stages) {
  return gpt2::plan_for(gpt2::parse_checkpoint(word), stages, [] { return gpt2::index{1} << 40; });
}

// Runs every block in this variant.
inline memfit::checkpoint::schedule with_variant(int variant,
                                                 const memfit::checkpoint::chain& stages) {
  auto actions = memfit::checkpoint::every(stages, 2).actions;
  for (auto& a : actions)
    if (a.what == memfit::checkpoint::act::run &&
        variant < std::ssize(stages[static_cast<std::size_t>(a.index)].variants))
      a.variant = variant;
  return memfit::checkpoint::check(stages, actions);
}

inline std::vector<memfit::checkpoint::schedule> all(const memfit::checkpoint::chain& stages) {
  std::vector<memfit::checkpoint::schedule> list;
  for (auto const* word : {"selective", "all", "sqrt", "every:3", "revolve:1", "revolve:2",
                           "budget:60%", "budget:75%", "auto"})
    list.push_back(of(word, stages));
  for (int variant = 0; variant < static_cast<int>(stages[1].variants.size()); ++variant)
    list.push_back(with_variant(variant, stages));
  return list;
}

}  // namespace schedules
