// A rule of the user's own, written once for lanes and once for plain floats: either has every
// state format, groups and hyper-parameters by name, with nothing changed in the library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/registry.hpp"
#include "memfit/state_file.hpp"
#include "support/files.hpp"
#include "support/formats.hpp"

namespace {

/// Momentum that moves a parameter only where the buffer and the gradient agree.
struct of_lanes {
  double lr = 0.1, beta = 0.9;
  static constexpr char const* name = "of_lanes";
  static constexpr std::array<memfit::slot, 1> slots{{{"buffer", memfit::range::any}}};
  struct constants {
    float lr, beta;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[1]) const {
      s[0] = memfit::fma(beta, s[0], g);
      p = memfit::select(s[0] * g > F(0.0f), memfit::fma(-lr, s[0], p), p);
    }
  };
  MEMFIT_HD constants at(std::int64_t) const {
    return {static_cast<float>(lr), static_cast<float>(beta)};
  }
  memfit::hyperparameter_list hyperparameters() { return {{"lr", lr}, {"beta", beta}}; }
};

/// The same.
struct of_floats {
  double lr = 0.1, beta = 0.9;
  static constexpr char const* name = "of_floats";
  static constexpr std::array<memfit::slot, 1> slots{{{"buffer", memfit::range::any}}};
  struct constants {
    float lr, beta;
    void operator()(float& p, float g, float (&s)[1]) const {
      s[0] = std::fma(beta, s[0], g);
      if (s[0] * g > 0) p = std::fma(-lr, s[0], p);
    }
  };
  constants at(std::int64_t) const { return {static_cast<float>(lr), static_cast<float>(beta)}; }
  memfit::hyperparameter_list hyperparameters() { return {{"lr", lr}, {"beta", beta}}; }
};

using choices = memfit::registry<memfit::rules<of_lanes, of_floats>, test::all_formats>;

constexpr std::size_t count = 700;

/// Parameters on their way into a valley that is steep in some directions and flat in others; the
/// second tensor's rate is halved.
struct trained {
  std::vector<std::vector<float>> parameters{std::vector<float>(count, 1.0f),
                                             std::vector<float>(count, -2.0f)};
  memfit::owner<memfit::any_optimizer> opt;

  trained(std::string const& rule, std::string const& format, int steps = 100)
      : opt(memfit::make<choices>(rule, format, memfit::host{1}, {{"beta", 0.8}},
                                  std::vector<memfit::tensor_ref<float>>{}, {.min_quantized = 1})) {
    opt->add_group({"flat"}, {{"lr", 0.05}});
    for (auto name : {"steep", "flat"})
      opt->add(memfit::tensor_ref<float>{parameters[opt->size()].data(), count, name});
    train(steps);
  }

  void train(int steps) {
    auto gradients = parameters;
    for (int step = 0; step < steps; ++step) {
      for (std::size_t t = 0; t < 2; ++t)
        for (std::size_t i = 0; i < count; ++i)
          gradients[t][i] = parameters[t][i] / static_cast<float>(1 + i % 5);
      opt->step(gradients);
    }
  }
};

TEST(own_rule, trains_in_every_format_the_same_whichever_way_it_is_written) {
  for (auto const& format : choices::format_names()) {
    SCOPED_TRACE(format);
    trained const lanes("of_lanes", format), floats("of_floats", format);
    EXPECT_EQ(lanes.parameters, floats.parameters);
    for (std::size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(lanes.opt->moment_sync(t, 0), floats.opt->moment_sync(t, 0));
      EXPECT_EQ(lanes.opt->steps_sync(t), 100);
      for (float x : lanes.parameters[t]) ASSERT_LT(std::fabs(x), 0.1f);
    }
    EXPECT_EQ(lanes.opt->describe().tensors[0].quantized, true);
    EXPECT_EQ(lanes.opt->get("beta", 1), 0.8);
  }
}

TEST(own_rule, goes_on_from_a_file_in_every_format) {
  test::folder const in;
  for (auto const& format : choices::format_names())
    for (auto const* rule : {"of_lanes", "of_floats"}) {
      SCOPED_TRACE(rule + (" in " + format));
      trained whole(rule, format, 6), half(rule, format, 3), resumed(rule, format, 1);
      memfit::save_state(in / "half", *half.opt);
      memfit::load_state(in / "half", *resumed.opt);
      for (std::size_t t = 0; t < 2; ++t)
        std::copy(half.parameters[t].begin(), half.parameters[t].end(),
                  resumed.parameters[t].begin());
      resumed.train(3);
      EXPECT_EQ(resumed.parameters, whole.parameters);
      EXPECT_EQ(resumed.opt->steps_sync(1), 6);
      EXPECT_NE(resumed.parameters, half.parameters);
    }
}

}  // namespace
