// What the ways to begin a part of a chain take: a part is some stages with the first one's input
// given and alive, from there to the end of the backward of the first one.
// Used by the searches for schedules.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memfit/checkpoint/plan/chain.hpp"

namespace memfit::checkpoint::detail {

/// The passes from the input of a part to a later activation: time, and most bytes with the input
/// kept and with it dropped once it is read.
struct passed {
  std::int64_t time = 0, bytes_kept = 0, bytes_dropped = 0;
};

/// Bytes count the input of the part, and what it ends with, but nothing outside it.
class chain_parts {
 public:
  explicit chain_parts(chain const& stages) : stages_(stages) {}

  chain const& stages() const { return stages_; }
  std::int64_t count() const { return static_cast<std::int64_t>(stages_.size()); }
  stage const& at(std::int64_t i) const { return stages_[static_cast<std::size_t>(i)]; }
  std::int64_t bytes_of(std::int64_t activation) const {
    return activation == 0 ? 0 : at(activation - 1).output;
  }

  /// Whether a stage that ends a part makes its output.
  bool makes_output(std::int64_t i) const { return i == count() - 1 || at(i).reads_output; }

  /// Forward and backward of a part of one stage.
  std::int64_t run_one_bytes(std::int64_t i, variant const& v) const {
    auto const output = makes_output(i) ? at(i).output : 0;
    return bytes_of(i) + v.saved + (std::max)(output + v.forward_scratch, backward_bytes(i, v));
  }

  /// Forward and backward of the first stage of a longer part, without what lies between.
  std::int64_t run_first_bytes(std::int64_t i, variant const& v) const {
    return bytes_of(i) + v.saved +
           (std::max)(at(i).output + v.forward_scratch, backward_bytes(i, v));
  }

  /// Element k is for the passes of stages s to s + k - 1, to activation s + k.
  std::vector<passed> passes_from(std::int64_t s) const {
    std::vector<passed> all(static_cast<std::size_t>(count() - s));
    std::int64_t first = 0, others = 0, others_kept = 0, time = 0;
    for (auto i = s; i + 1 < count(); ++i) {
      auto const bytes = bytes_of(i) + bytes_of(i + 1) + at(i).scratch;
      time += at(i).forward;
      if (i == s) {
        first = bytes;
      } else {
        others = (std::max)(others, bytes);
        others_kept = bytes_of(s) + others;
      }
      all[static_cast<std::size_t>(i + 1 - s)] = {time, (std::max)(first, others_kept),
                                                  (std::max)(first, others)};
    }
    return all;
  }

 private:
  std::int64_t backward_bytes(std::int64_t i, variant const& v) const {
    return (at(i).reads_output ? at(i).output : 0) + v.backward_scratch;
  }

  chain const& stages_;
};

}  // namespace memfit::checkpoint::detail
