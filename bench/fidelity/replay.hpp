// What every replay offers, and how far it strays from the exact run.
// Used by the fidelity bench: one replay per rule and format, beside one exact run per rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace memfit::bench {

/// Sums over the elements and steps of one tensor.
struct deviation {
  double update_error = 0, update_norm = 0;  // squares
  double path_error = 0, path_norm = 0;      // squares, after the last step
  double largest = 0;                        // update, over the learning rate

  void operator+=(deviation const& d) {
    update_error += d.update_error;
    update_norm += d.update_norm;
    path_error += d.path_error;
    path_norm += d.path_norm;
    largest = std::max(largest, d.largest);
  }
  double update() const { return std::sqrt(update_error / update_norm); }
  double path() const { return std::sqrt(path_error / path_norm); }
};

using numbers = std::vector<double>;

/// One tensor under one rule and format. A step starts from a parameter of zero, without decay, so
/// that what it leaves there is the update to the last bit.
class tensor_replay {
 public:
  virtual ~tensor_replay() = default;
  /// Writes the update of step `step`, counted from 1, for this gradient.
  virtual void step(std::vector<float> const& gradient, std::int64_t step, numbers& update) = 0;
};

/// How to make one for tensors of any size; both moments of the format take `bytes` per parameter.
struct candidate {
  std::string name;
  double bytes = 0;
  std::unique_ptr<tensor_replay> (*make)(std::int64_t count, double lr) = nullptr;
};

/// A rule with its exact run in double and the formats to compare.
struct contest {
  std::string rule;
  std::unique_ptr<tensor_replay> (*make_exact)(std::int64_t count, double lr) = nullptr;
  std::vector<candidate> candidates;
};

/// One tensor's replays of a contest, in step.
class tensor_contest {
 public:
  tensor_contest(contest const& of, std::int64_t count, double lr)
      : lr_(lr),
        exact_(of.make_exact(count, lr)),
        exact_update_(static_cast<std::size_t>(count)),
        update_(exact_update_),
        exact_path_(exact_update_) {
    for (auto const& c : of.candidates) runs_.push_back({c.make(count, lr), exact_path_, {}});
  }

  void step(std::vector<float> const& gradient, std::int64_t step) {
    exact_->step(gradient, step, exact_update_);
    for (std::size_t i = 0; i < exact_update_.size(); ++i) exact_path_[i] += exact_update_[i];
    for (auto& r : runs_) {
      r.replay->step(gradient, step, update_);
      for (std::size_t i = 0; i < update_.size(); ++i) {
        double const error = update_[i] - exact_update_[i];
        r.sums.update_error += error * error;
        r.sums.update_norm += exact_update_[i] * exact_update_[i];
        r.sums.largest = std::max(r.sums.largest, std::fabs(update_[i]) / lr_);
        r.path[i] += update_[i];
      }
    }
  }

  /// One per candidate.
  std::vector<deviation> result() const {
    std::vector<deviation> all;
    for (auto const& r : runs_) {
      deviation d = r.sums;
      for (std::size_t i = 0; i < r.path.size(); ++i) {
        double const error = r.path[i] - exact_path_[i];
        d.path_error += error * error;
        d.path_norm += exact_path_[i] * exact_path_[i];
      }
      all.push_back(d);
    }
    return all;
  }

 private:
  struct run {
    std::unique_ptr<tensor_replay> replay;
    numbers path;
    deviation sums;
  };

  double lr_;
  std::unique_ptr<tensor_replay> exact_;
  numbers exact_update_, update_, exact_path_;
  std::vector<run> runs_;
};

}  // namespace memfit::bench
