// How ranks divide a model: elements of tensors, and the stages of a pipeline.
// Used by the estimate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "memfit/fit/model.hpp"

namespace memfit::fit::detail {

/// The largest of `ranks` parts of a whole.
constexpr std::int64_t share(std::int64_t whole, std::int64_t ranks) {
  return whole / ranks + (whole % ranks != 0);
}

/// The stages first … last - 1 of a pipeline's rank, with as many passes under way as it has ranks
/// from here on (1F1B).
struct stage_run {
  std::size_t first = 0, last = 0;
  std::int64_t in_flight = 1;
};

inline std::vector<std::int64_t> elements_by_stage(model const& m) {
  std::vector<std::int64_t> all;
  for (auto const& s : m.stages)
    all.push_back(
        std::accumulate(s.parameters.begin(), s.parameters.end(), std::int64_t{0},
                        [](std::int64_t sum, parameter const& p) { return sum + p.count; }));
  return all;
}

/// Where runs begin that have at most `most` elements where one stage has no more; at least `runs`.
inline std::vector<std::size_t> starts_of_runs(std::vector<std::int64_t> const& elements,
                                               std::size_t runs, std::int64_t most) {
  std::vector<std::size_t> starts{0};
  std::int64_t sum = elements[0];
  for (std::size_t s = 1; s < elements.size(); ++s) {
    bool const one_each = starts.size() + (elements.size() - s) == runs;
    if (one_each || elements[s] > most - sum) {
      starts.push_back(s);
      sum = 0;
    }
    sum += elements[s];
  }
  return starts;
}

/// The stages of each of `ranks`, of which there are no more than stages; the largest run has as
/// few elements as can be.
inline std::vector<stage_run> runs_of(model const& m, std::int64_t ranks) {
  auto const elements = elements_by_stage(m);
  auto const runs = static_cast<std::size_t>(ranks);
  auto least = *std::max_element(elements.begin(), elements.end());
  auto enough = std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
  while (least < enough) {
    auto const middle = least + (enough - least) / 2;
    if (starts_of_runs(elements, runs, middle).size() <= runs)
      enough = middle;
    else
      least = middle + 1;
  }
  auto starts = starts_of_runs(elements, runs, least);
  starts.push_back(elements.size());
  std::vector<stage_run> all;
  for (std::size_t r = 0; r < runs; ++r)
    all.push_back({starts[r], starts[r + 1], ranks - static_cast<std::int64_t>(r)});
  return all;
}

}  // namespace memfit::fit::detail
