// quantize and dequantize refuse what does not fit together, name the tensor and the sizes, and
// write nothing. Null data, wrong counts and overlap, one argument at a time.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/quantize.hpp"
#include "support/guarded.hpp"
#include "support/refusal.hpp"

namespace {

constexpr std::int64_t count = 300, blocks = 2;

class refusals : public testing::Test {
 protected:
  memfit::host exec{1};
  std::vector<float> values = std::vector<float>(count, 1.5f);
  test::guarded<float> in{values}, scales{blocks}, out{count};
  test::guarded<std::uint8_t> codes{count};
  memfit::tensor_ref<float> in_ref = in.ref("wte"), scales_ref = scales.ref("wte.scales"),
                            out_ref = out.ref("wte");
  memfit::tensor_ref<std::uint8_t> codes_ref = codes.ref("wte.codes");

  void refuses_to_quantize(std::initializer_list<std::string_view> parts) {
    refuses([&] { memfit::quantize<memfit::dynamic8>(exec, in_ref, codes_ref, scales_ref); },
            "memfit::quantize", parts);
    refuses(
        [&] {
          memfit::quantize<memfit::float8, memfit::range::non_negative>(exec, in_ref, codes_ref,
                                                                        scales_ref);
        },
        "memfit::quantize", parts);
  }
  void refuses_to_dequantize(std::initializer_list<std::string_view> parts) {
    refuses([&] { memfit::dequantize<memfit::dynamic8>(exec, codes_ref, scales_ref, out_ref); },
            "memfit::dequantize", parts);
  }

 private:
  void refuses(std::function<void()> const& call, std::string_view function,
               std::initializer_list<std::string_view> parts) {
    auto const all = [&] {
      return std::vector{in.snapshot(), codes.snapshot(), scales.snapshot(), out.snapshot()};
    };
    auto const before = all();
    test::expect_refusal<memfit::argument_error>(call, {function, "'wte'"});
    test::expect_refusal<memfit::argument_error>(call, parts);
    EXPECT_EQ(all(), before);
  }
};

TEST_F(refusals, codes_that_share_bytes_count_by_halves) {
  test::guarded<memfit::bf16> short_scales{5};
  for (std::int64_t wrong : {149, 151, 300}) {
    codes_ref.count = wrong;
    test::expect_refusal<memfit::argument_error>(
        [&] { memfit::quantize<memfit::packed4>(exec, in_ref, codes_ref, short_scales.ref()); },
        {"codes", std::to_string(wrong), "150"});
  }
  EXPECT_TRUE(codes.intact() && short_scales.intact());
  codes_ref.count = 150;
  EXPECT_NO_THROW(memfit::quantize<memfit::packed4>(exec, in_ref, codes_ref, short_scales.ref()));
}

TEST_F(refusals, codes_of_another_count) {
  for (std::int64_t wrong : {0, 1, 299, 301}) {
    codes_ref.count = wrong;
    refuses_to_quantize({"codes", std::to_string(wrong), "300"});
    refuses_to_dequantize({"codes", std::to_string(wrong), "300"});
  }
}

TEST_F(refusals, scales_of_another_count) {
  for (std::int64_t wrong : {0, 1, 3, 300}) {
    scales_ref.count = wrong;
    refuses_to_quantize({"scales", std::to_string(wrong), "2"});
    refuses_to_dequantize({"scales", std::to_string(wrong), "2"});
  }
}

TEST_F(refusals, an_output_of_another_count) {
  out_ref.count = count + 7;
  refuses_to_dequantize({"307", "300"});
}

TEST_F(refusals, null_data_with_elements) {
  in_ref.data = out_ref.data = nullptr;
  refuses_to_quantize({"300"});
  refuses_to_dequantize({"300"});
  in_ref = in.ref("wte");
  out_ref = out.ref("wte");
  codes_ref.data = nullptr;
  refuses_to_quantize({"codes", "300"});
  refuses_to_dequantize({"codes", "300"});
  codes_ref = codes.ref("wte.codes");
  scales_ref.data = nullptr;
  refuses_to_quantize({"scales", "2"});
  refuses_to_dequantize({"scales", "2"});
}

TEST_F(refusals, negative_counts) {
  in_ref.count = codes_ref.count = out_ref.count = -1;
  refuses_to_quantize({"-1"});
  refuses_to_dequantize({"-1"});
}

TEST_F(refusals, overlapping_tensors) {
  auto const bytes = [](float* p) { return reinterpret_cast<std::uint8_t*>(p); };
  codes_ref.data = bytes(in.data()) + 1;
  refuses_to_quantize({"codes", "overlap"});
  codes_ref.data = bytes(out.data() + count) - 1;
  refuses_to_dequantize({"codes", "overlap"});
  codes_ref = codes.ref("wte.codes");
  scales_ref.data = in.data() + count - 1;
  refuses_to_quantize({"scales", "overlap"});
  scales_ref.data = out.data();
  refuses_to_dequantize({"scales", "overlap"});
  scales_ref = scales.ref("wte.scales");
  scales_ref.data = reinterpret_cast<float*>(codes.data() + 4);
  refuses_to_quantize({"codes", "scales", "overlap"});
  refuses_to_dequantize({"codes", "scales", "overlap"});
}

TEST_F(refusals, a_tensor_without_a_name_by_the_name_of_its_codes) {
  in_ref.name = out_ref.name = {};
  codes_ref.count = 1;
  auto const message = [&](auto&& call) -> std::string {
    try {
      call();
    } catch (memfit::error const& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_NE(message([&] {
              memfit::quantize<memfit::float8>(exec, in_ref, codes_ref, scales_ref);
            }).find("'wte.codes'"),
            std::string::npos);
}

TEST_F(refusals, neighbours_that_touch_are_not_overlapping) {
  test::guarded<float> both(2 * count);
  memfit::tensor_ref<float> const first{both.data(), count}, second{both.data() + count, count};
  memfit::quantize<memfit::dynamic8>(exec, first, codes_ref, scales_ref);
  memfit::dequantize<memfit::dynamic8>(exec, codes_ref, scales_ref, second);
}

}  // namespace
