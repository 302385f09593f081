// ST-02: loading cast moments and step counters to the type of the parameters. Here: the reported
// numbers in fp32 moments of bf16 parameters, and every width of moments at counters that no
// 16-bit float and no fp32 can count to; files of another type are refused unless asked for.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/state_file.hpp"
#include "support/files.hpp"
#include "support/guarded.hpp"
#include "support/inputs.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::bf16;
using memfit::fp32;

constexpr std::int64_t count = 700;
constexpr std::int64_t counters[] = {255,      256,      257,     2047,      2048,           2049,
                                     16777216, 16777217, 1 << 30, 1LL << 40, (1LL << 40) + 1};

/// Puts bytes in the place of a tensor's in a file.
template <class E>
void replace(std::string const& path, std::string const& name, std::vector<E> const& values) {
  auto content = test::content(path);
  memfit::tensor_file const f(path);
  std::int64_t all = 0;
  for (auto const& each : f.tensors()) all += each.bytes();
  auto const& t = f.at(name);
  ASSERT_EQ(t.bytes(), std::ssize(values) * static_cast<std::int64_t>(sizeof(E)));
  std::memcpy(content.data() + std::ssize(content) - all + t.begin, values.data(),
              values.size() * sizeof(E));
  test::write(path, content);
}

std::vector<bf16> as_bf16(std::vector<float> const& values) {
  std::vector<bf16> out;
  for (float x : values) out.emplace_back(x);
  return out;
}

template <class Format>
struct run {
  std::vector<bf16> w;
  memfit::optimizer<memfit::adamw, Format, bf16> opt;

  explicit run(double lr = 1e-3)
      : w(as_bf16(test::make_input(test::kind::normal, count, 1))),
        opt(memfit::host{1}, {.lr = lr},
            std::vector{memfit::tensor_ref<bf16>(w.data(), count, "w")}, {.min_quantized = 1}) {}
  void step(std::uint64_t seed) {
    opt.step_one(0, test::make_input(test::kind::normal, count, seed));
  }
};

template <class Format>
void resumes_at_every_counter() {
  test::folder const in;
  run<Format> trained(1e-2);
  trained.step(2);
  trained.step(3);
  memfit::save_state(in / "first", trained.opt);
  EXPECT_EQ(memfit::tensor_file(in / "first").at("w.step").type, memfit::stored_type::i64);
  for (auto const t : counters) {
    replace<std::int64_t>(in / "first", "w.step", {t});
    run<Format> uninterrupted, resumed;
    memfit::load_state(in / "first", uninterrupted.opt);
    memfit::save_state(in / "second", uninterrupted.opt);
    EXPECT_TRUE(test::content(in / "second") == test::content(in / "first")) << t;
    EXPECT_EQ(uninterrupted.opt.steps_sync(0), t);
    EXPECT_EQ(uninterrupted.opt.rule().lr, 1e-2);
    uninterrupted.w = resumed.w = trained.w;
    for (std::uint64_t step = 4; step < 7; ++step) uninterrupted.step(step);
    memfit::load_state(in / "second", resumed.opt);
    for (std::uint64_t step = 4; step < 7; ++step) resumed.step(step);
    EXPECT_EQ(resumed.opt.steps_sync(0), t + 3);
    EXPECT_EQ(test::bytes_of(resumed.w), test::bytes_of(uninterrupted.w)) << t;
    EXPECT_NE(test::bytes_of(resumed.w), test::bytes_of(trained.w)) << t;
    memfit::save_state(in / "a", uninterrupted.opt);
    memfit::save_state(in / "b", resumed.opt);
    EXPECT_TRUE(test::content(in / "a") == test::content(in / "b")) << t;
  }
}

TEST(ST_02, fp32_moments_of_bf16_parameters) {
  resumes_at_every_counter<fp32>();
}
TEST(ST_02, bf16_moments) {
  resumes_at_every_counter<bf16>();
}
TEST(ST_02, fp16_moments) {
  resumes_at_every_counter<memfit::fp16>();
}
TEST(ST_02, eight_bit_moments) {
  resumes_at_every_counter<memfit::dynamic8>();
}

TEST(ST_02, the_reported_moments_keep_every_bit) {
  test::folder const in;
  run<fp32> first, second;
  memfit::save_state(in / "f", first.opt);
  replace(in / "f", "w.exp_avg", std::vector<float>(count, 0.1f));
  replace(in / "f", "w.exp_avg_sq", std::vector<float>(count, 1e-12f));
  memfit::load_state(in / "f", second.opt);
  for (float m : second.opt.moment_sync(0, 0)) ASSERT_EQ(memfit::bits(m), 0x3dcccccdu);
  for (float v : second.opt.moment_sync(0, 1)) ASSERT_EQ(v, 1e-12f);
  memfit::save_state(in / "g", second.opt);
  EXPECT_TRUE(test::content(in / "f") == test::content(in / "g"));
}

TEST(ST_02, another_type_is_refused_unless_asked_for) {
  test::folder const in;
  run<fp32> wide;
  run<memfit::dynamic8> narrow;
  wide.step(2);
  narrow.step(3);
  memfit::save_state(in / "wide", wide.opt);
  memfit::save_state(in / "narrow", narrow.opt);
  auto const before = test::content(in / "narrow");
  test::expect_refusal<memfit::file_error>(
      [&] { memfit::load_state(in / "wide", narrow.opt); },
      {"format.w.exp_avg", "'fp32'", "'dynamic8, block 256, scales F32'"});
  memfit::save_state(in / "narrow", narrow.opt);
  EXPECT_TRUE(test::content(in / "narrow") == before);

  auto const decoded = narrow.opt.moment_sync(0, 1);
  memfit::load_state(in / "narrow", memfit::states(wide.opt, {.convert = true}));
  EXPECT_EQ(wide.opt.moment_sync(0, 1), decoded);
  memfit::save_state(in / "wide", wide.opt);
  run<memfit::dynamic8> again;
  memfit::load_state(in / "wide", memfit::states(again.opt, {.convert = true}));
  EXPECT_EQ(again.opt.moment_sync(0, 1), decoded);  // values of codes are coded as themselves
  EXPECT_EQ(again.opt.steps_sync(0), 1);
}

}  // namespace
