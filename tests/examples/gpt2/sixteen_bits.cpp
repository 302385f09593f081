// Everything that a backend computes on tensors of 16 bits against the host's in double on the same
// values: no further off than rounding the result once, whatever is summed before. Built for the
// host and, with GPT2_ON_CUDA, for CUDA.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "device.hpp"
#include "host_backend.hpp"
#include "host_convert.hpp"
#include "random.hpp"
#include "user_error.hpp"

namespace {

using gpt2::bf16;
using gpt2::fp16;
using gpt2::index;
using gpt2::tensor;
using gpt2::token;

// Half the distance to the next value, relative to it; and half the least distance.
template <class T>
constexpr double rounding = 0;
template <>
constexpr double rounding<bf16> = 0x1p-8;
template <>
constexpr double rounding<fp16> = 0x1p-11;
template <class T>
constexpr double least = 0;
template <>
constexpr double least<bf16> = 0x1p-134;
template <>
constexpr double least<fp16> = 0x1p-25;

// What float makes of the sums, relative to the largest entry.
constexpr double of_float = 5e-6;

template <class T>
double value(const T& x) {
  if constexpr (gpt2::narrow<T>)
    return static_cast<float>(x);
  else
    return x;
}

template <class T>
std::vector<T> values_of(const tensor<T>& t) {
  std::vector<T> values(static_cast<std::size_t>(t.size()));
  t.read(0, values.data(), t.size());
  return values;
}

// The same values in double, and in 16 bits or, for results that stay wide, in float.
template <class T>
struct twin {
  tensor<T> computed;
  tensor<double> exact;

  [[nodiscard]] std::vector<std::uint16_t> bits() const {
    std::vector<std::uint16_t> all;
    for (T const x : values_of(computed)) all.push_back(x.bits);
    return all;
  }

  [[nodiscard]] testing::AssertionResult agrees() const {
    auto const is = values_of(computed);
    double largest = 0;
    for (index i = 0; i < exact.size(); ++i) largest = std::max(largest, std::abs(exact[i]));
    for (index i = 0; i < exact.size(); ++i) {
      double const allowed =
          rounding<T> * std::abs(exact[i]) + least<T> + of_float * largest + 1e-30;
      if (!(std::abs(value(is[static_cast<std::size_t>(i)]) - exact[i]) <= allowed * 1.01))
        return testing::AssertionFailure()
               << "entry " << i << " of " << exact.size() << " is "
               << value(is[static_cast<std::size_t>(i)]) << ", not " << exact[i];
    }
    return testing::AssertionSuccess();
  }
};

struct sizes {
  index batch, seq, heads, channels;
};

constexpr sizes all_sizes[] = {{1, 1, 1, 1},   {1, 5, 3, 33}, {3, 1, 2, 10},
                               {2, 37, 5, 35}, {7, 3, 1, 64}, {40, 16, 2, 130}};

template <class T>
class sixteen_bits : public testing::Test {
 protected:
  gpt2::random_source random{5, 0};
  gpt2::budget counts;
  std::unique_ptr<gpt2::device<T>> device;
  gpt2::host_backend<double> exact{1};

  void SetUp() override {
#ifdef GPT2_ON_CUDA
    try {
      device = gpt2::open_cuda<T>(counts);
    } catch (const gpt2::user_error& none) {
      GTEST_SKIP() << none.what();
    }
#else
    device = gpt2::open_host<T>(2, counts);
#endif
  }

  gpt2::memory& memory() {
    return device->network().own_memory();
  }

  template <class U>
  twin<U> make(std::vector<index> extents, double deviation) {
    twin<U> t{{"computed", extents, memory()}, {"exact", extents}};
    std::vector<U> drawn(static_cast<std::size_t>(t.exact.size()));
    std::generate(drawn.begin(), drawn.end(),
                  [&] { return U(static_cast<float>(deviation * random.normal())); });
    std::transform(drawn.begin(), drawn.end(), t.exact.data(), [](U x) { return value(x); });
    t.computed.write(0, drawn.data(), std::ssize(drawn));
    return t;
  }
  twin<T> normal(std::vector<index> extents, double deviation = 1) {
    return make<T>(std::move(extents), deviation);
  }
  twin<float> statistics(index rows) {
    return make<float>({rows}, 1);
  }

  // The same in the memory of either backend.
  template <class U>
  struct placed {
    std::vector<U> on_host;
    tensor<U> there;

    const U* seen_by(const gpt2::backend<T>&) const { return there.data(); }
    const U* seen_by(const gpt2::backend<double>&) const { return on_host.data(); }
  };
  template <class U>
  placed<U> place(std::vector<U> values) {
    placed<U> p{std::move(values), {}};
    p.there = tensor<U>{"placed", {std::ssize(p.on_host)}, memory()};
    p.there.write(0, p.on_host.data(), p.there.size());
    return p;
  }

  // Few different ones, so that some repeat often and some are absent.
  placed<token> tokens(index rows, std::uint64_t apart = 42) {
    std::vector<token> drawn(static_cast<std::size_t>(rows));
    std::generate(drawn.begin(), drawn.end(),
                  [&] { return static_cast<token>(random.bits() % 3 * apart); });
    return place(std::move(drawn));
  }

  template <class Run>
  void on_both(Run run) {
    run(
        device->network(), [](auto& t) -> auto& { return t.computed; });
    run(
        static_cast<gpt2::backend<double>&>(exact), [](auto& t) -> auto& { return t.exact; });
  }

  template <class Body>
  void for_all_sizes(Body body) {
    for (auto const& s : all_sizes) {
      SCOPED_TRACE(std::to_string(s.batch) + " windows of " + std::to_string(s.seq) + ", " +
                   std::to_string(s.heads) + " heads, " + std::to_string(s.channels) + " channels");
      body(s, s.batch * s.seq);
      if (this->HasFatalFailure()) return;
    }
  }
};

using types = testing::Types<bf16, fp16>;
struct type_names {
  template <class T>
  static std::string GetName(int) {
    return std::is_same_v<T, bf16> ? "bf16" : "fp16";
  }
};
TYPED_TEST_SUITE(sixteen_bits, types, type_names);

TYPED_TEST(sixteen_bits, layer_norm) {
  this->for_all_sizes([&](sizes s, index rows) {
    auto in = this->normal({rows, s.channels}), gain = this->normal({s.channels});
    auto bias = this->normal({s.channels}), out = this->normal({rows, s.channels});
    auto again = this->normal({rows, s.channels});
    auto mean = this->statistics(rows), reciprocal = this->statistics(rows);
    this->on_both([&](auto& on, auto of) {
      using own = std::remove_cvref_t<decltype(of(in)[0])>;
      gpt2::row_moments<own> moments{std::move(of(mean)), std::move(of(reciprocal))};
      on.layer_norm(rows, of(in), of(gain), of(bias), of(out), moments);
      on.normalize(rows, of(in), of(gain), of(bias), moments, of(again));
      of(mean) = std::move(moments.mean);
      of(reciprocal) = std::move(moments.reciprocal);
    });
    EXPECT_TRUE(mean.agrees()) << "mean";
    EXPECT_TRUE(reciprocal.agrees()) << "reciprocal";
    EXPECT_TRUE(out.agrees()) << "out";
    EXPECT_EQ(out.bits(), again.bits());
  });
}

TYPED_TEST(sixteen_bits, layer_norm_backward) {
  this->for_all_sizes([&](sizes s, index rows) {
    auto in = this->normal({rows, s.channels}), gain = this->normal({s.channels});
    auto d_out = this->normal({rows, s.channels}), d_in = this->normal({rows, s.channels});
    auto d_gain = this->normal({s.channels}), d_bias = this->normal({s.channels});
    auto mean = this->statistics(rows), reciprocal = this->statistics(rows);
    this->on_both([&](auto& on, auto of) {
      using own = std::remove_cvref_t<decltype(of(in)[0])>;
      gpt2::row_moments<own> moments{std::move(of(mean)), std::move(of(reciprocal))};
      on.layer_norm_backward(rows, of(in), of(gain), moments, of(d_out), of(d_in), of(d_gain),
                             of(d_bias));
    });
    EXPECT_TRUE(d_in.agrees()) << "d_in";
    EXPECT_TRUE(d_gain.agrees()) << "d_gain";
    EXPECT_TRUE(d_bias.agrees()) << "d_bias";
  });
}

TYPED_TEST(sixteen_bits, gelu) {
  for (index const count : {1, 15, 1024, 1025, 9001}) {
    SCOPED_TRACE(count);
    auto in = this->normal({count}, 3), out = this->normal({count}),
         gradient = this->normal({count});
    this->on_both([&](auto& on, auto of) {
      on.gelu(count, of(in), of(out));
      on.gelu_backward(count, of(in), of(gradient));
    });
    EXPECT_TRUE(out.agrees()) << "out";
    EXPECT_TRUE(gradient.agrees()) << "gradient";
  }
}

TYPED_TEST(sixteen_bits, dropout) {
  index const count = 5000;
  gpt2::dropout const which{0.3F, {1234, 5}, (index{1} << 32) - 700};
  auto in = this->normal({count}), out = this->normal({count}), sum = this->normal({count});
  this->on_both([&](auto& on, auto of) {
    on.drop(count, which, of(in), of(out), gpt2::store::overwrite);
    on.drop(count, which, of(in), of(sum), gpt2::store::add);
  });
  EXPECT_TRUE(out.agrees()) << "out";
  EXPECT_TRUE(sum.agrees()) << "sum";
}

TYPED_TEST(sixteen_bits, causal_softmax) {
  this->for_all_sizes([&](sizes s, index) {
    index const matrices = s.batch * s.heads;
    auto scores = this->normal({matrices, s.seq, s.seq}, 4);
    auto probabilities = this->normal({matrices, s.seq, s.seq});
    auto gradient = this->normal({matrices, s.seq, s.seq});
    this->on_both([&](auto& on, auto of) {
      using scale = std::remove_cvref_t<decltype(of(scores)[0])>;
      on.causal_softmax(matrices, s.seq, gpt2::wide<scale>(0.7), of(scores));
      on.causal_softmax_backward(matrices, s.seq, gpt2::wide<scale>(0.7), of(probabilities),
                                 of(gradient));
    });
    EXPECT_TRUE(scores.agrees()) << "probabilities";
    EXPECT_TRUE(gradient.agrees()) << "gradient";
  });
}

// A token's gradient is a sum over many rows, which 16 bits would stop adding to.
TYPED_TEST(sixteen_bits, embedding) {
  this->for_all_sizes([&](sizes s, index rows) {
    auto const text = this->tokens(rows, 140);
    auto of_token = this->normal({300, s.channels});
    auto of_position = this->normal({s.seq + 2, s.channels});
    auto out = this->normal({rows, s.channels}), d_out = this->normal({rows, s.channels});
    auto d_of_token = this->normal({300, s.channels});
    auto d_of_position = this->normal({s.seq + 2, s.channels});
    this->on_both([&](auto& on, auto of) {
      on.embed(rows, s.seq, text.seen_by(on), of(of_token), of(of_position), of(out));
      on.embed_backward(rows, s.seq, text.seen_by(on), of(d_out), of(d_of_token),
                        of(d_of_position));
    });
    EXPECT_TRUE(out.agrees()) << "out";
    EXPECT_TRUE(d_of_token.agrees()) << "d_of_token";
    EXPECT_TRUE(d_of_position.agrees()) << "d_of_position";
  });
}

TYPED_TEST(sixteen_bits, cross_entropy_under_a_loss_scale) {
  this->for_all_sizes([&](sizes s, index rows) {
    auto const targets = this->tokens(rows);
    index const vocabulary = 200 + s.channels;
    auto logits = this->normal({rows, vocabulary}, 2);
    auto losses = this->statistics(rows);
    auto const loss_scale = this->place(std::vector<float>{1000});
    this->on_both([&](auto& on, auto of) {
      using scale = std::remove_cvref_t<decltype(of(logits)[0])>;
      on.cross_entropy(rows, targets.seen_by(on), gpt2::wide<scale>(0.3), loss_scale.seen_by(on),
                       of(logits), of(losses));
    });
    EXPECT_TRUE(losses.agrees()) << "losses";
    EXPECT_TRUE(logits.agrees()) << "gradient";
  });
}

TYPED_TEST(sixteen_bits, sums_copies_and_zeros) {
  this->for_all_sizes([&](sizes s, index rows) {
    auto in = this->normal({rows, s.channels}), sum = this->normal({s.channels});
    auto out = this->normal({rows, s.channels}), zero = this->normal({rows, s.channels});
    this->on_both([&](auto& on, auto of) {
      on.add_rows(rows, of(in), of(sum));
      on.copy(rows * s.channels, of(in), of(out));
      on.set_zero(of(zero));
    });
    EXPECT_TRUE(sum.agrees()) << "sum";
    EXPECT_EQ(out.bits(), in.bits());
    EXPECT_EQ(zero.bits(), std::vector<std::uint16_t>(zero.bits().size(), 0));
  });
}

// The products of a linear layer and of attention's batches of heads, which lie side by side.
TYPED_TEST(sixteen_bits, products) {
  this->for_all_sizes([&](sizes s, index rows) {
    index const outputs = 3 * s.channels;
    auto x = this->normal({rows, s.channels}), w = this->normal({s.channels, outputs});
    auto b = this->normal({outputs});
    auto y = this->normal({rows, outputs}), sum = this->normal({rows, outputs});
    auto dx = this->normal({rows, s.channels}), dw = this->normal({s.channels, outputs});
    auto d_y = this->normal({rows, outputs});
    this->on_both([&](auto& on, auto of) {
      auto const to = [&](auto& t) {
        return gpt2::row_major(of(t).data(), of(t).extents()[0], of(t).extents()[1]);
      };
      on.multiply(to(x), to(w), to(y), gpt2::store::overwrite, of(b).data());
      on.multiply(to(x), to(w), to(sum), gpt2::store::add, of(b).data());
      on.multiply(to(x).transposed(), to(d_y), to(dw), gpt2::store::add);
      on.multiply(to(d_y), to(w).transposed(), to(dx));
    });
    EXPECT_TRUE(y.agrees()) << "y";
    EXPECT_TRUE(sum.agrees()) << "sum";
    EXPECT_TRUE(dw.agrees()) << "dw";
    EXPECT_TRUE(dx.agrees()) << "dx";
  });
}

TYPED_TEST(sixteen_bits, products_of_heads) {
  this->for_all_sizes([&](sizes s, index rows) {
    index const channels = s.channels * s.heads;
    auto packed = this->normal({rows, 3 * channels});
    auto scores = this->normal({s.batch * s.heads, s.seq, s.seq});
    auto squares = this->normal({s.batch * s.heads, s.seq, s.seq});
    auto out = this->normal({rows, channels}), transposed = this->normal({rows, channels});
    this->on_both([&](auto& on, auto of) {
      auto const heads = [&](auto* first, index stride) {
        return gpt2::matrix<std::remove_reference_t<decltype(*first)>>{
            first, s.seq, s.channels, stride, 1, s.batch, s.heads, s.seq * stride, s.channels};
      };
      auto const square = [&](auto* first) {
        return gpt2::matrix<std::remove_reference_t<decltype(*first)>>{
            first,        s.seq, s.seq, s.seq, 1, s.batch, s.heads, s.heads * s.seq * s.seq,
            s.seq * s.seq};
      };
      auto* const p = of(packed).data();
      on.multiply(heads(p, 3 * channels), heads(p + channels, 3 * channels).transposed(),
                  square(of(scores).data()));
      on.multiply(square(of(squares).data()), heads(p + 2 * channels, 3 * channels),
                  heads(of(out).data(), channels));
      on.multiply(square(of(squares).data()).transposed(), heads(p, 3 * channels),
                  heads(of(transposed).data(), channels));
    });
    EXPECT_TRUE(scores.agrees()) << "scores";
    EXPECT_TRUE(out.agrees()) << "out";
    EXPECT_TRUE(transposed.agrees()) << "transposed";
  });
}

// All patterns there and back, and what lies just below, at and just above the middle between
// neighbours; the same from every position in a vector.
TYPED_TEST(sixteen_bits, conversions_are_those_of_the_library) {
  std::vector<TypeParam> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> floats(all.size());
  gpt2::widen(std::ssize(all), all.data(), floats.data());
  std::vector<float> hostile;
  for (std::size_t i = 0; i < all.size(); ++i) {
    float const x = static_cast<float>(all[i]);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(floats[i]), std::bit_cast<std::uint32_t>(x)) << i;
    if (i % 0x8000 == 0x7fff || std::isnan(x)) continue;
    float const next = static_cast<float>(all[i + 1]);
    float const middle = std::isfinite(next) ? x + (next - x) / 2 : x * 1.0002F;
    hostile.insert(hostile.end(),
                   {x, std::nextafter(middle, 0.0F), middle, std::nextafter(middle, 2 * middle)});
  }
  hostile.insert(hostile.end(), {std::numeric_limits<float>::quiet_NaN(), -0.0F, 1e-45F, -1e38F});
  std::vector<TypeParam> rounded(hostile.size());
  for (std::size_t first = 0; first < 17; ++first) {
    gpt2::narrow_to(std::ssize(hostile) - static_cast<index>(first), hostile.data() + first,
                    rounded.data());
    for (std::size_t i = first; i < hostile.size(); ++i)
      ASSERT_EQ(rounded[i - first].bits, TypeParam{hostile[i]}.bits) << hostile[i];
  }
}

}  // namespace
