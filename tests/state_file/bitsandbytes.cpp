// States of bitsandbytes: its own file comes in and goes out bit for bit, with the moments that it
// decodes itself; other maps, shapes and block sizes are told apart.
#include "memfit/interop/bitsandbytes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "memfit/exec/host.hpp"
#include "support/files.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::bitsandbytes_states;
using memfit::file_error;
using memfit::stored_type;
using memfit::tensor_file;

std::string const golden = MEMFIT_TEST_GOLDEN "/bitsandbytes.safetensors";

template <class Format>
struct imported {
  std::vector<float> w = std::vector<float>(26 * 27, 1.0f), b = std::vector<float>(10, 1.0f);
  memfit::optimizer<memfit::adamw, Format> opt{
      memfit::host{1},
      {.lr = 1e-2, .beta2 = 0.99, .weight_decay = 0.1},
      std::vector{memfit::tensor_ref<float>(w.data(), 702, "w"),
                  memfit::tensor_ref<float>(b.data(), 10, "b")},
      {.min_quantized = 256}};
};

std::vector<float> floats(tensor_file const& f, std::string const& name) {
  std::vector<float> values(static_cast<std::size_t>(f.at(name).count()));
  f.read(name, values);
  return values;
}
std::string bytes(tensor_file const& f, std::string const& name) {
  auto const& t = f.at(name);
  std::string all(static_cast<std::size_t>(t.bytes()), '\0');
  f.read(t, 0, all.data(), t.bytes());
  return all;
}

/// Whether bitsandbytes keeps it; what else the golden file has tells what that means.
bool is_state(std::string const& name) {
  for (char const* const kind : {".state", ".qmap", ".absmax", ".step"})
    if (name.find(kind) != name.npos) return true;
  return false;
}

TEST(bitsandbytes, states_come_in_and_go_out_bit_for_bit) {
  test::folder const in;
  imported<memfit::dynamic8> run;
  memfit::load_state(golden, bitsandbytes_states(run.opt));
  tensor_file const theirs(golden);
  for (int slot = 0; slot < 2; ++slot) {
    auto const moment = ".moment" + std::to_string(slot + 1);
    EXPECT_EQ(run.opt.moment_sync(0, slot), floats(theirs, "w" + moment));
    EXPECT_EQ(run.opt.moment_sync(1, slot), floats(theirs, "b" + moment));
  }
  EXPECT_EQ(run.opt.steps_sync(0), 3);
  memfit::save_state(in / "f", bitsandbytes_states(run.opt));
  tensor_file const ours(in / "f");
  std::size_t exported = 0;
  for (auto const& t : theirs.tensors())
    if (is_state(t.name)) {
      ++exported;
      EXPECT_EQ(memfit::text_of(ours.at(t.name).type), std::string(memfit::text_of(t.type)));
      EXPECT_TRUE(bytes(ours, t.name) == bytes(theirs, t.name)) << t.name;
    }
  EXPECT_EQ(ours.tensors().size(), exported);
}

TEST(bitsandbytes, its_next_step_is_taken_here) {
  tensor_file const theirs(golden);
  imported<memfit::dynamic8> run;
  theirs.read("w.before", run.w);
  theirs.read("b.before", run.b);
  memfit::load_state(golden, bitsandbytes_states(run.opt));
  run.opt.step(std::vector{floats(theirs, "w.gradient"), floats(theirs, "b.gradient")});
  for (auto const& [name, ours] : {std::pair{"w.after", &run.w}, {"b.after", &run.b}}) {
    auto const after = floats(theirs, name);
    for (std::size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR((*ours)[i], after[i], 4e-7 * std::fabs(after[i]) + 1e-8) << name << " " << i;
  }
}

TEST(bitsandbytes, states_are_converted_where_asked) {
  imported<memfit::float8> run;
  test::expect_refusal<file_error>(
      [&] { memfit::load_state(golden, bitsandbytes_states(run.opt)); },
      {"'w.state1'", "'dynamic8, block 256", "'float8, block 256"});
  EXPECT_EQ(run.opt.steps_sync(0), 0);
  memfit::load_state(golden, bitsandbytes_states(run.opt, {.convert = true}));
  auto const theirs = floats(tensor_file(golden), "w.moment1");
  auto const ours = run.opt.moment_sync(0, 0);
  float largest = 0;
  for (float x : theirs) largest = std::max(largest, std::fabs(x));
  for (std::size_t i = 0; i < ours.size(); ++i)
    ASSERT_NEAR(ours[i], theirs[i], std::fabs(theirs[i]) / 16 + largest * 0x1p-10f) << i;
  test::folder const in;
  test::expect_refusal<memfit::argument_error>(
      [&] { memfit::save_state(in / "f", bitsandbytes_states(run.opt)); },
      {"'w'", "exp_avg", "float8", "dynamic8"});
}

/// The golden file with something else in the place of one tensor.
template <class E>
void replaced(std::string const& path, std::string const& name, stored_type type,
              std::vector<E> const& values) {
  tensor_file const f(golden);
  auto tensors = f.tensors();
  for (auto& t : tensors)
    if (t.name == name) {
      t.type = type;
      t.shape = {std::ssize(values)};
    }
  memfit::tensor_file_writer to(path, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto const old = bytes(f, tensors[i].name);
    if (tensors[i].name == name)
      to.write(i, values.data(), std::ssize(values) * static_cast<std::int64_t>(sizeof(E)));
    else
      to.write(i, old.data(), std::ssize(old));
  }
  to.commit();
}

TEST(bitsandbytes, what_differs_is_refused_by_name) {
  test::folder const in;
  imported<memfit::dynamic8> run;
  auto const refused = [&](std::initializer_list<std::string_view> said) {
    test::expect_refusal<file_error>(
        [&] { memfit::load_state(in / "f", bitsandbytes_states(run.opt)); }, said);
    EXPECT_EQ(run.opt.steps_sync(0), 0);
  };
  tensor_file const f(golden);
  auto map = floats(f, "w.qmap2");
  replaced(in / "f", "w.qmap1", stored_type::f32, map);
  refused({"'w.qmap1'", "other kind", "signed dynamic map"});
  map[100] *= 1.01f;
  replaced(in / "f", "w.qmap2", stored_type::f32, map);
  refused({"'w.qmap2'", "not the dynamic map", "unsigned dynamic map"});
  map[100] = __builtin_nanf("");
  replaced(in / "f", "w.qmap2", stored_type::f32, map);
  refused({"'w.qmap2'"});
  replaced(in / "f", "w.qmap2", stored_type::f32, std::vector<float>(255));
  refused({"'w.qmap2'", "[255]"});
  replaced(in / "f", "w.absmax2", stored_type::f32, std::vector<float>(4));
  refused({"'w.absmax2'", "[4]", "702"});
  replaced(in / "f", "w.absmax2", stored_type::f32, std::vector<float>(1));
  refused({"'w.state2'", "block 2048", "block 256"});
  replaced(in / "f", "w.absmax2", stored_type::f32, std::vector<float>{1, -1, 1});
  refused({"'w.absmax2'", "block 1"});
  replaced(in / "f", "w.absmax2", stored_type::i32, std::vector<std::int32_t>(3));
  refused({"'w.absmax2'", "I32"});
  replaced(in / "f", "w.state2", stored_type::u8, std::vector<std::uint8_t>(701));
  refused({"'w.state2'", "[701]", "702"});
  replaced(in / "f", "w.state2", stored_type::bf16, std::vector<std::uint16_t>(702));
  refused({"'w.state2'", "BF16"});
  replaced(in / "f", "w.step", stored_type::i64, std::vector<std::int64_t>{-1});
  refused({"'w.step'"});
  replaced(in / "f", "w.step", stored_type::f32, std::vector<float>{2.5f});
  refused({"'w.step'"});
  replaced(in / "f", "w.step", stored_type::f32, std::vector<float>{7});
  memfit::load_state(in / "f", bitsandbytes_states(run.opt));
  EXPECT_EQ(run.opt.steps_sync(0), 7);
}

TEST(bitsandbytes, maps_of_other_machines_differ_in_their_last_bits) {
  test::folder const in;
  imported<memfit::dynamic8> run;
  auto map = floats(tensor_file(golden), "w.qmap2");
  for (std::size_t i = 1; i < map.size(); i += 2) map[i] = std::nextafter(map[i], 0.0f);
  replaced(in / "f", "w.qmap2", stored_type::f32, map);
  memfit::load_state(in / "f", bitsandbytes_states(run.opt));
  EXPECT_EQ(run.opt.steps_sync(0), 3);
}

}  // namespace
