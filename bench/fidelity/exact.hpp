// The exact run of a rule: the tests' reference rules in double, which share no code with memfit.
// Used by the fidelity bench as what all formats are measured against.
#pragma once

#include <vector>

#include "replay.hpp"
#include "support/reference_of.hpp"

namespace memfit::bench {

/// A rule of memfit with this rate and without decay.
template <class Rule>
Rule plain_rule(double lr) {
  Rule r;
  r.lr = lr;
  r.weight_decay = 0;
  return r;
}

template <class Rule>
class exact_replay : public tensor_replay {
 public:
  exact_replay(std::int64_t count, double lr)
      : rule_(reference::of(plain_rule<Rule>(lr))), elements_(static_cast<std::size_t>(count)) {}

  void step(std::vector<float> const& gradient, std::int64_t step, numbers& update) override {
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      elements_[i].p = 0;
      // A rule without a second moment yet has nothing to divide by.
      if (gradient[i] != 0 || touched(elements_[i])) rule_(elements_[i], double{gradient[i]}, step);
      update[i] = -elements_[i].p;
    }
  }

 private:
  static bool touched(reference::element<double> const& e) {
    return e.s[0] != 0 || e.s[1] != 0 || e.s[2] != 0;
  }

  decltype(reference::of(Rule{})) rule_;
  std::vector<reference::element<double>> elements_;
};

template <class Rule>
std::unique_ptr<tensor_replay> make_exact(std::int64_t count, double lr) {
  return std::make_unique<exact_replay<Rule>>(count, lr);
}

}  // namespace memfit::bench
