// The chain that memfit's description of a GPT-2 has is that of the network here, to the byte.
#include <gtest/gtest.h>

#include <memfit/fit/transformer.hpp>

#include <tuple>

#include "counting_backend.hpp"
#include "model.hpp"

namespace {

namespace checkpoint = memfit::checkpoint;

auto bytes_of(const checkpoint::variant& v) {
  return std::tuple{v.saved, v.forward_scratch, v.backward_scratch};
}

template <class T>
void has_the_same_bytes(const gpt2::config& sizes, gpt2::extent shape) {
  gpt2::counting_backend<T> on;
  gpt2::weights<T> w{sizes}, d_w{sizes};
  gpt2::model<T> const network{on, sizes, shape, w, d_w};
  auto const own = network.chain();
  auto const described = memfit::fit::transformer({.name = "own",
                                                   .layers = sizes.layers,
                                                   .heads = sizes.heads,
                                                   .channels = sizes.channels,
                                                   .vocabulary = sizes.vocabulary,
                                                   .context = sizes.context});
  auto const chain = described.chain({shape.batch, shape.seq, sizeof(T)}, {});
  ASSERT_EQ(chain.size(), own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    SCOPED_TRACE("stage " + std::to_string(i));
    EXPECT_EQ(chain[i].output, own[i].output);
    EXPECT_EQ(chain[i].gradient, own[i].gradient);
    EXPECT_EQ(chain[i].scratch, own[i].scratch);
    EXPECT_EQ(chain[i].reads_output, own[i].reads_output);
    ASSERT_EQ(chain[i].variants.size(), own[i].variants.size());
    for (std::size_t v = 0; v < own[i].variants.size(); ++v)
      EXPECT_EQ(bytes_of(chain[i].variants[v]), bytes_of(own[i].variants[v])) << "variant " << v;
  }
}

/// The parameters, too: the tensors of each stage in the order of the network.
template <class T>
void has_the_same_tensors(const gpt2::config& sizes) {
  gpt2::weights<T> w{sizes};
  std::vector<memfit::fit::parameter> all;
  auto const described = memfit::fit::transformer({.name = "own",
                                                   .layers = sizes.layers,
                                                   .heads = sizes.heads,
                                                   .channels = sizes.channels,
                                                   .vocabulary = sizes.vocabulary,
                                                   .context = sizes.context});
  for (auto const& s : described.stages)
    all.insert(all.end(), s.parameters.begin(), s.parameters.end());
  EXPECT_EQ(all.back().name, "wte");
  all.pop_back();
  auto const own = w.all();
  ASSERT_EQ(all.size(), own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(all[i].name, own[i]->name());
    EXPECT_EQ(all[i].count, own[i]->size());
  }
}

TEST(gpt2_chain, is_as_described) {
  gpt2::config const narrow{.layers = 2, .heads = 4, .channels = 128, .context = 512},
      odd{.layers = 3, .heads = 3, .channels = 51, .context = 100, .vocabulary = 1001};
  for (auto const& sizes : {narrow, odd})
    for (auto const shape : {gpt2::extent{1, 1}, gpt2::extent{3, 37}, gpt2::extent{2, 100}}) {
      SCOPED_TRACE(std::to_string(shape.batch) + " x " + std::to_string(shape.seq));
      has_the_same_bytes<float>(sizes, shape);
      has_the_same_bytes<gpt2::bf16>(sizes, shape);
    }
  has_the_same_bytes<float>(narrow, {5, 512});  // squares are larger than all else
}

TEST(gpt2_chain, has_the_tensors_described) {
  has_the_same_tensors<float>({.layers = 3, .heads = 3, .channels = 51, .context = 100});
}

}  // namespace
