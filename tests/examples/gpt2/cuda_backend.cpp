// Everything that the CUDA backend computes against the host backend, on sizes that are no multiple
// of anything, and that it repeats itself to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "device.hpp"
#include "random.hpp"
#include "schedules.hpp"
#include "user_error.hpp"

namespace {

using gpt2::index;
using gpt2::tensor;
using gpt2::token;

template <class T>
std::vector<T> values_of(const tensor<T>& t) {
  std::vector<T> values(static_cast<std::size_t>(t.size()));
  t.read(0, values.data(), t.size());
  return values;
}

// Entries may differ by this share of the largest one: different orders of summation, different
// exponentials.
constexpr float relative_tolerance = 2e-5F;
constexpr float absolute_tolerance = 1e-6F;

void expect_near(const tensor<float>& computed, const tensor<float>& expected) {
  auto const is = values_of(computed);
  auto const should_be = values_of(expected);
  float largest = 0;
  for (float const x : should_be) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < is.size(); ++i)
    ASSERT_NEAR(is[i], should_be[i], relative_tolerance * largest + absolute_tolerance)
        << computed.name() << " entry " << i << " of " << is.size();
}

// The same tensor for the host and for CUDA.
template <class T>
struct twin {
  tensor<T> on_host, on_cuda;

  void expect_near() const { ::expect_near(on_cuda, on_host); }
};

template <class T>
auto pair_of(gpt2::device<float>& host, gpt2::device<float>& cuda, std::vector<index> extents) {
  return twin<T>{{"of the host", extents, host.network().own_memory()},
                 {"of CUDA", extents, cuda.network().own_memory()}};
}

struct sizes {
  index batch, seq, heads, channels;
};

class cuda_backend : public testing::TestWithParam<sizes> {
 protected:
  void SetUp() override {
    try {
      cuda = gpt2::open_cuda<float>(counts);
    } catch (const gpt2::user_error& none) {
      GTEST_SKIP() << none.what();
    }
  }

  template <class T, class Next>
  twin<T> filled(std::vector<index> extents, Next next) {
    auto t = pair_of<T>(*host, *cuda, std::move(extents));
    std::generate(t.on_host.data(), t.on_host.data() + t.on_host.size(), next);
    t.on_cuda.write(0, t.on_host.data(), t.on_host.size());
    return t;
  }

  twin<float> normal(std::vector<index> extents) {
    return filled<float>(std::move(extents), [&] { return static_cast<float>(random.normal()); });
  }

  // Few different ones, so that some repeat and some are absent.
  twin<token> tokens(std::uint64_t apart = 42) {
    return filled<token>({rows}, [&] { return static_cast<token>(random.bits() % 7 * apart); });
  }

  // Calls `run(backend, select)` for both, where select(twin) is the backend's own tensor.
  template <class Run>
  void on_both(Run run) {
    run(
        host->network(), [](auto& t) -> auto& { return t.on_host; });
    run(
        cuda->network(), [](auto& t) -> auto& { return t.on_cuda; });
  }

  gpt2::random_source random{5, 0};
  gpt2::budget counts;
  std::unique_ptr<gpt2::device<float>> host = gpt2::open_host<float>(1, counts);
  std::unique_ptr<gpt2::device<float>> cuda;
  index const rows = GetParam().batch * GetParam().seq;
  index const seq = GetParam().seq;
  index const channels = GetParam().channels;
  index const matrices = GetParam().batch * GetParam().heads;
};

TEST_P(cuda_backend, layer_norm) {
  auto in = normal({rows, channels}), gain = normal({channels}), bias = normal({channels});
  auto out = normal({rows, channels}), again = normal({rows, channels});
  auto mean = normal({rows}), reciprocal = normal({rows});
  auto d_out = normal({rows, channels}), d_in = normal({rows, channels});
  auto d_gain = normal({channels}), d_bias = normal({channels});
  on_both([&](auto& on, auto of) {
    gpt2::row_moments<float> moments{std::move(of(mean)), std::move(of(reciprocal))};
    on.layer_norm(rows, of(in), of(gain), of(bias), of(out), moments);
    on.normalize(rows, of(in), of(gain), of(bias), moments, of(again));
    on.layer_norm_backward(rows, of(in), of(gain), moments, of(d_out), of(d_in), of(d_gain),
                           of(d_bias));
    of(mean) = std::move(moments.mean);
    of(reciprocal) = std::move(moments.reciprocal);
  });
  for (auto const* t : {&out, &mean, &reciprocal, &d_in, &d_gain, &d_bias}) t->expect_near();
  EXPECT_EQ(values_of(again.on_cuda), values_of(out.on_cuda));
  EXPECT_EQ(values_of(again.on_host), values_of(out.on_host));
}

TEST_P(cuda_backend, dropout) {
  gpt2::dropout const which{
      .share = 0.3F, .key = {17, 18}, .first = (index{1} << 32) - rows * channels / 2};
  auto in = normal({rows, channels}), out = normal({rows, channels}),
       sum = normal({rows, channels});
  on_both([&](auto& on, auto of) {
    on.drop(rows * channels, which, of(in), of(out), gpt2::store::overwrite);
    on.drop(rows * channels, which, of(in), of(sum), gpt2::store::add);
  });
  EXPECT_EQ(values_of(out.on_cuda), values_of(out.on_host));
  sum.expect_near();
}

TEST_P(cuda_backend, gelu) {
  auto in = normal({rows, 4 * channels}), out = normal({rows, 4 * channels});
  auto gradient = normal({rows, 4 * channels});
  on_both([&](auto& on, auto of) {
    on.gelu(of(in).size(), of(in), of(out));
    on.gelu_backward(of(in).size(), of(in), of(gradient));
  });
  out.expect_near();
  gradient.expect_near();
}

TEST_P(cuda_backend, causal_softmax) {
  auto scores = normal({matrices, seq, seq}), gradient = normal({matrices, seq, seq});
  on_both([&](auto& on, auto of) {
    on.causal_softmax(matrices, seq, 0.7F, of(scores));
    on.causal_softmax_backward(matrices, seq, 0.7F, of(scores), of(gradient));
  });
  scores.expect_near();
  gradient.expect_near();
}

TEST_P(cuda_backend, embedding) {
  auto text = tokens(49);
  auto of_token = normal({300, channels}), of_position = normal({seq + 2, channels});
  auto out = normal({rows, channels}), d_out = normal({rows, channels});
  auto d_of_token = normal({300, channels}), d_of_position = normal({seq + 2, channels});
  on_both([&](auto& on, auto of) {
    on.embed(rows, seq, of(text).data(), of(of_token), of(of_position), of(out));
    on.embed_backward(rows, seq, of(text).data(), of(d_out), of(d_of_token), of(d_of_position));
  });
  for (auto const* t : {&out, &d_of_token, &d_of_position}) t->expect_near();
}

TEST_P(cuda_backend, cross_entropy) {
  auto targets = tokens(49);
  auto logits = normal({rows, 301}), losses = normal({rows});
  on_both([&](auto& on, auto of) {
    on.cross_entropy(rows, of(targets).data(), 0.3F, nullptr, of(logits), of(losses));
  });
  logits.expect_near();
  losses.expect_near();
}

TEST_P(cuda_backend, sums_copies_and_zeros) {
  auto in = normal({rows, channels}), sum = normal({channels});
  auto out = normal({rows, channels}), zero = normal({rows, channels});
  on_both([&](auto& on, auto of) {
    on.add_rows(rows, of(in), of(sum));
    on.copy(rows * channels - 1, of(in), of(out));
    on.set_zero(of(zero));
  });
  sum.expect_near();
  EXPECT_EQ(values_of(out.on_cuda), values_of(out.on_host));
  EXPECT_EQ(values_of(zero.on_cuda), values_of(zero.on_host));
}

// The products of a linear layer: y = x w + b, with and without y; dw += x^T dy; dx = dy w^T; and
// one whose matrix is a single column, which lies in memory as a row does.
TEST_P(cuda_backend, products) {
  index const outputs = 3 * channels;
  auto x = normal({rows, channels}), w = normal({channels, outputs}), b = normal({outputs});
  auto y = normal({rows, outputs}), sum = normal({rows, outputs});
  auto dx = normal({rows, channels}), dw = normal({channels, outputs});
  auto column = normal({rows, 1}), of_column = normal({1, outputs});
  on_both([&](auto& on, auto of) {
    auto const to = [&](auto& t) {
      return gpt2::row_major(of(t).data(), of(t).extents()[0], of(t).extents()[1]);
    };
    on.multiply(to(x), to(w), to(y), gpt2::store::overwrite, of(b).data());
    on.multiply(to(x), to(w), to(sum), gpt2::store::add, of(b).data());
    on.multiply(to(x).transposed(), to(y), to(dw), gpt2::store::add);
    on.multiply(to(y), to(w).transposed(), to(dx));
    on.multiply(to(column).transposed(), to(y), to(of_column));
  });
  for (auto const* t : {&y, &sum, &dx, &dw, &of_column}) t->expect_near();
}

// A whole network, in which attention's products run over batches and heads.
struct network {
  gpt2::config sizes;
  gpt2::extent shape;
  float dropped_share;
  gpt2::device<float>& on;
  gpt2::memory& in = on.network().own_memory();
  gpt2::weights<float> parameters{sizes, in}, gradients{sizes, in};
  // Made for a larger batch than the one that runs.
  gpt2::model<float> model{
      on.network(), sizes, {shape.batch + 1, shape.seq + 3}, parameters, gradients};

  double differentiate(const token* inputs, const token* targets, const char* checkpoint = "none") {
    model.set_batch({shape.batch + 1, shape.seq + 3}, dropped_share);
    auto const stages = model.chain();
    auto const run = on.make_runner(stages, schedules::of(checkpoint, stages));
    model.set_batch(shape, dropped_share);
    for (auto* g : gradients.all()) on.network().set_zero(*g);
    run->forward(model, inputs, {.seed = 3, .step = 5});
    double const loss = model.loss(targets);
    run->backward(model);
    return loss;
  }
};

TEST_P(cuda_backend, network) {
  auto const p = GetParam();
  gpt2::config const model{
      .layers = 2, .heads = p.heads, .channels = p.channels, .context = p.seq + 3};
  auto inputs = tokens(), targets = tokens();
  network expected{model, {p.batch, p.seq}, 0.2F, *host};
  network computed{model, {p.batch, p.seq}, 0.2F, *cuda};
  network repeated{model, {p.batch, p.seq}, 0.2F, *cuda};
  auto const tensors = expected.parameters.all();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::vector<float> drawn(static_cast<std::size_t>(tensors[i]->size()));
    for (float& x : drawn) x = 0.2F * static_cast<float>(random.normal());
    for (auto* net : {&expected, &computed, &repeated})
      net->parameters.all()[i]->write(0, drawn.data(), std::ssize(drawn));
  }
  double const loss = expected.differentiate(inputs.on_host.data(), targets.on_host.data());
  EXPECT_NEAR(computed.differentiate(inputs.on_cuda.data(), targets.on_cuda.data()), loss,
              1e-5 * loss);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    expect_near(*computed.gradients.all()[i], *expected.gradients.all()[i]);
  for (auto const* checkpoint : {"none", "selective", "all", "revolve:1"}) {
    repeated.differentiate(inputs.on_cuda.data(), targets.on_cuda.data(), checkpoint);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      auto const& gradient = *computed.gradients.all()[i];
      EXPECT_EQ(values_of(gradient), values_of(*repeated.gradients.all()[i]))
          << gradient.name() << " with " << checkpoint;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(gpt2, cuda_backend,
                         testing::Values(sizes{1, 1, 1, 3}, sizes{1, 5, 3, 33}, sizes{3, 1, 2, 10},
                                         sizes{2, 37, 5, 35}, sizes{7, 3, 1, 64},
                                         sizes{1, 70, 2, 130}),
                         [](const auto& tested) {
                           auto const p = tested.param;
                           return std::to_string(p.batch) + "_windows_of_" + std::to_string(p.seq) +
                                  "_with_" + std::to_string(p.heads) + "_heads_in_" +
                                  std::to_string(p.channels) + "_channels";
                         });

}  // namespace
