// An optimizer on a device in a file that no CUDA compiler sees: made elsewhere, stepped here.
#include <gtest/gtest.h>

#include <vector>

#include "cuda/device.hpp"
#include "memfit/exec/cuda.hpp"
#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "support/inputs.hpp"

using memfit::tensor_ref;
using refs = std::vector<tensor_ref<float>>;
using optimizer8 = memfit::optimizer<memfit::adamw, memfit::float8>;

/// In optimizer.cu.
optimizer8 made_on_device(memfit::cuda exec, refs const& parameters);

namespace {

TEST(cuda_plain, steps_an_optimizer_that_a_cuda_file_made) {
  auto p = test::make_input(test::kind::normal, 5000, 1);
  auto g = test::make_input(test::kind::normal, 5000, 2);
  test::on_device<float> const p_there(p), g_there(g);
  test::stream s;
  memfit::cuda const exec{s};
  auto device = made_on_device(exec, {{p_there.data(), 5000, "w"}});
  optimizer8 host(memfit::host{1}, device.rule(), refs{{p.data(), 5000, "w"}});
  device.step(refs{{g_there.data(), 5000}});
  host.step(refs{{g.data(), 5000}});
  s.wait();
  EXPECT_EQ(p_there.get(), p);
  EXPECT_EQ(device.moment_sync(0, 1), host.moment_sync(0, 1));
}

}  // namespace
