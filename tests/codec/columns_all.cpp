// Parameter columns in two parts, of every float and every pair of parts: 2^32 each.
// Label large: minutes of two processors.
#include "codec/columns.hpp"
#include "memfit/exec/host.hpp"

namespace {

using memfit::bf16, memfit::fp16, memfit::split, memfit::corrected;

template <class Column>
class every_pattern : public testing::Test {};
using columns = testing::Types<split<bf16>, split<fp16>, corrected<bf16>, corrected<fp16>>;
TYPED_TEST_SUITE(every_pattern, columns);

/// Calls look(upper, lower) for all pairs below 2^16 and `lowers` until some fail.
template <class Look>
void all_pairs(std::uint32_t lowers, Look const& look) {
  memfit::host const exec;
  exec.for_each_task(0x10000, [&](std::int64_t upper) {
    if (testing::Test::HasFatalFailure()) return;
    for (std::uint32_t lower = 0; lower < lowers; ++lower)
      look(static_cast<std::uint32_t>(upper), lower);
  });
}

TYPED_TEST(every_pattern, is_kept) {
  all_pairs(0x10000, [](std::uint32_t upper, std::uint32_t lower) {
    test::two_parts<TypeParam>::keeps(upper << 16 | lower);
  });
}

TYPED_TEST(every_pattern, is_read) {
  all_pairs(test::two_parts<TypeParam>::rests, [](std::uint32_t visible, std::uint32_t rest) {
    test::two_parts<TypeParam>::reads(visible, rest);
  });
}

}  // namespace
