// ST-05: a reader trusted the offsets of a header, data lay at odd addresses, and a file of
// metadata alone was written broken. Here: the reported files, each read alone and as a state, and
// the layout of every file that is written.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/state_file.hpp"
#include "support/files.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::file_error;
using memfit::tensor_file;

std::string tensor(std::string const& name, std::string const& type, std::string const& shape,
                   std::string const& offsets) {
  return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}
std::string file(std::string const& entries, std::size_t data) {
  return test::tensor_file("{" + entries + "}", std::string(data, 'x'));
}

/// An optimizer whose states a load must not touch where the file is refused.
struct trained {
  std::vector<float> w = std::vector<float>(5, 1.0f);
  memfit::optimizer<memfit::momentum, memfit::fp32> opt{
      memfit::host{1}, {.lr = 0.1}, std::vector{memfit::tensor_ref<float>(w.data(), 5, "w")}};
  test::folder const in;

  trained() { opt.step_one(0, std::vector<float>(5, 2.0f)); }
  std::string saved() {
    memfit::save_state(in / "saved", opt);
    return test::content(in / "saved");
  }
  void refuses(std::string const& content, std::initializer_list<std::string_view> said) {
    auto const before = saved();
    test::write(in / "f", content);
    test::expect_refusal<file_error>([&] { tensor_file const f(in / "f"); }, said);
    test::expect_refusal<file_error>([&] { memfit::load_state(in / "f", opt); }, said);
    EXPECT_TRUE(saved() == before);
  }
};

TEST(ST_05, a_shape_and_offsets_disagree) {
  trained t;
  t.refuses(file(tensor("big", "F32", "[1000,1000]", "[0,4]"), 4),
            {"'big'", "F32 [1000,1000]", "4000000", "0 to 4"});
  t.refuses(file(tensor("w", "F16", "[3]", "[0,12]"), 12), {"'w'", "6 bytes", "0 to 12"});
}

TEST(ST_05, b_end_before_begin) {
  trained t;
  t.refuses(file(tensor("w", "F32", "[1]", "[4,0]"), 4), {"'w'", "4 to 0"});
}

TEST(ST_05, c_end_beyond_the_file) {
  trained t;
  t.refuses(file(tensor("w", "F32", "[2]", "[0,8]"), 4), {"'w'", "0 to 8", "of 4"});
  t.refuses(file(tensor("w", "U8", "[4]", "[9223372036854775803,9223372036854775807]"), 4),
            {"'w'", "9223372036854775807"});
}

TEST(ST_05, d_header_longer_than_the_file) {
  trained t;
  auto content = file(tensor("w", "F32", "[1]", "[0,4]"), 4);
  for (std::uint64_t const length : {std::uint64_t{content.size() - 7}, std::uint64_t{1} << 20,
                                     std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    for (unsigned i = 0; i < 8; ++i) content[i] = static_cast<char>(length >> 8 * i & 0xff);
    t.refuses(content, {std::to_string(length), std::to_string(content.size())});
  }
}

TEST(ST_05, e_tensors_overlap_or_leave_a_gap) {
  trained t;
  auto const two = [](char const* a, char const* b) {
    return file(tensor("a", "U8", "[4]", a) + "," + tensor("b", "U8", "[4]", b), 8);
  };
  t.refuses(two("[0,4]", "[0,4]"), {"'b'", "overlaps"});
  t.refuses(two("[0,4]", "[2,6]"), {"'b'", "overlaps", "byte 2"});
  t.refuses(two("[3,7]", "[0,4]"), {"'a'", "overlaps", "byte 3"});
  t.refuses(file(tensor("a", "U8", "[4]", "[0,4]") + "," + tensor("b", "U8", "[3]", "[5,8]"), 8),
            {"'b'", "a gap", "byte 4"});
  t.refuses(file(tensor("a", "U8", "[7]", "[1,8]"), 8), {"'a'", "a gap", "byte 0"});
}

TEST(ST_05, f_shapes_beyond_64_bits) {
  trained t;
  for (char const* shape : {"[4294967296,4294967296]", "[9223372036854775807,3]",
                            "[4611686018427387904]", "[4294967296,4294967296,0]"})
    t.refuses(file(tensor("w", "F32", shape, "[0,4]"), 4), {"'w'", "2^63"});
}

TEST(ST_05, g_data_at_odd_addresses) {
  test::folder const in;
  std::vector<double> const written{1.5, -2.5};
  for (std::size_t pad = 0; pad < 8; ++pad) {
    std::string const header = "{" + tensor("d", "F64", "[2]", "[1,17]") + "," +
                               tensor("b", "U8", "[1]", "[0,1]") + "}" + std::string(pad, ' ');
    std::string data(17, 'x');
    std::copy_n(reinterpret_cast<char const*>(written.data()), 16, data.begin() + 1);
    test::write(in / "f", test::tensor_file(header, data));
    std::vector<double> read(2);
    tensor_file(in / "f").read("d", read);
    EXPECT_EQ(read, written);
  }
}

TEST(ST_05, h_metadata_alone) {
  test::folder const in;
  memfit::tensor_file_writer(in / "f", {}, {{"k", "v"}}).commit();
  tensor_file const f(in / "f");
  EXPECT_TRUE(f.tensors().empty());
  EXPECT_EQ(f.words(), (memfit::stored_words{{"k", "v"}}));
  memfit::tensor_file_writer(in / "f", {}).commit();
  tensor_file const nothing(in / "f");
  EXPECT_TRUE(nothing.words().empty());
  test::write(in / "f", test::tensor_file(R"({"__metadata__":{"k":"v"}})", ""));
  EXPECT_EQ(*tensor_file(in / "f").word("k"), "v");
}

TEST(ST_05, i_tensors_without_elements) {
  test::folder const in;
  test::write(in / "f",
              file(tensor("none", "F32", "[0]", "[0,0]") + "," + tensor("a", "U8", "[2]", "[0,2]") +
                       "," + tensor("last", "F64", "[3,0]", "[2,2]"),
                   2));
  tensor_file const f(in / "f");
  EXPECT_EQ(f.at("none").count(), 0);
  EXPECT_EQ(f.at("last").shape, (std::vector<std::int64_t>{3, 0}));
  std::vector<float> nothing;
  f.read("none", nothing);
}

TEST(ST_05, j_truncated_anywhere) {
  trained t;
  auto const whole = t.saved();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    test::write(t.in / "f", whole.substr(0, bytes));
    ASSERT_THROW(memfit::load_state(t.in / "f", t.opt), file_error) << bytes;
  }
  t.refuses(whole.substr(0, whole.size() - 1), {"bytes of data"});
}

TEST(ST_05, k_garbage) {
  trained t;
  t.refuses(test::tensor_file("not JSON", "xxxx"), {"header, byte 0"});
  t.refuses(test::tensor_file(std::string(100, '\0'), ""), {"header, byte 0"});
  t.refuses(std::string(100, '\0'), {"header, byte 0"});
}

TEST(ST_05, l_trailing_bytes) {
  trained t;
  t.refuses(t.saved() + "x", {"bytes of data"});
}

TEST(ST_05, written_files_have_padded_headers_and_no_gaps) {
  trained t;
  for (std::size_t pad = 0; pad < 9; ++pad) {
    memfit::save_state(t.in / "f", memfit::states(t.opt, {.prefix = std::string(pad, 'p')}));
    auto const content = test::content(t.in / "f");
    std::uint64_t length = 0;
    for (unsigned i = 8; i > 0; --i)
      length = length << 8 | static_cast<unsigned char>(content[i - 1]);
    EXPECT_EQ((8 + length) % 8, 0u);
    EXPECT_EQ(content[8], '{');
    std::int64_t data = 0;
    tensor_file const f(t.in / "f");
    for (auto const& stored : f.tensors()) data += stored.bytes();
    EXPECT_EQ(content.size(), 8 + length + static_cast<std::uint64_t>(data));
  }
}

}  // namespace
