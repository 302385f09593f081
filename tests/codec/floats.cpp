// The unscaled formats fp32, bf16 and fp16: rounding to nearest, and second moments that stay above
// zero. Their conversions are tested in core; here is what a slot adds to them.
#include <gtest/gtest.h>

#include "memfit/codec/float.hpp"

namespace {

using memfit::range;

template <class Format>
class unscaled : public testing::Test {};
using formats = testing::Types<memfit::fp32, memfit::bf16, memfit::fp16>;
TYPED_TEST_SUITE(unscaled, formats);

template <class Format, range Range>
void converts_as_its_type() {
  using codec = memfit::codec_for<Format, Range>;
  static_assert(memfit::codec<codec> && !codec::scaled);
  static_assert(sizeof(typename codec::code) == sizeof(Format));
  EXPECT_EQ(codec::decode(codec::zero), 0.0f);
  for (float x : {0.0f, 1.0f, 1.0f / 3, 65504.0f, 65520.0f, 1e-7f, 3e-8f, 1e-41f, 3e38f}) {
    for (float y : {x, -x}) {
      auto const there = static_cast<float>(Format(y));
      EXPECT_EQ(codec::decode(codec::encode(y)), there) << y;
    }
  }
}

TYPED_TEST(unscaled, convert_as_their_types_do) {
  converts_as_its_type<TypeParam, range::any>();
  converts_as_its_type<TypeParam, range::non_negative>();
}

}  // namespace
