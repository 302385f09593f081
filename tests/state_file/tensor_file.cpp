// Tensor files: what is written reads back, and whatever is not such a file is refused.
#include <sys/resource.h>

#include <csignal>
#include <limits>
#include <random>
#include <vector>

#include "memfit/state_file/reader.hpp"
#include "memfit/state_file/writer.hpp"
#include "support/files.hpp"
#include "support/refusal.hpp"

namespace {

using memfit::file_error;
using memfit::stored_tensor;
using memfit::stored_type;
using memfit::tensor_file;
using memfit::tensor_file_writer;

std::string entry(std::string const& rest) {
  return R"({"w":)" + rest + "}";
}

struct hostile {
  char const* name;
  std::string header;
  std::size_t data;
  char const* said;
};

std::vector<hostile> hostile_headers() {
  auto const one = [](std::string const& dtype, std::string const& shape, std::string const& at) {
    return entry(R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + at +
                 "}");
  };
  std::string const good = R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  return {
      {"empty", "", 0, "expected '{'"},
      {"blank_first", " {}", 0, "expected '{'"},
      {"array", "[]", 0, "expected '{'"},
      {"unclosed", "{", 0, "expected '\"'"},
      {"behind_the_end", "{}x", 0, "behind the end"},
      {"trailing_comma", R"({"w":)" + good + ",}", 2, "expected '\"'"},
      {"no_comma", R"({"w":)" + good + R"( "v":{}})", 2, "expected '}'"},
      {"single_quotes", "{'w':{}}", 0, "expected '\"'"},
      {"comment", "{/**/}", 0, "expected '\"'"},
      {"deep", entry(std::string(100000, '[')), 0, "expected '{'"},
      {"deep_shape", one(R"("U8")", std::string(100000, '['), "[0,2]"), 2, "expected an integer"},
      {"deep_word", R"({"__metadata__":{"k":{"k":"v"}}})", 0, "expected '\"'"},
      {"word_is_number", R"({"__metadata__":{"k":1}})", 0, "expected '\"'"},
      {"words_twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "comes twice"},
      {"word_twice", R"({"__metadata__":{"k":"1","k":"2"}})", 0, "'k' comes twice"},
      {"tensor_twice", R"({"w":)" + good + R"(,"w":)" + good + "}", 2, "'w' comes twice"},
      {"tensor_twice_escaped", R"({"w":)" + good + R"(,"\u0077":)" + good + "}", 2, "comes twice"},
      {"key_twice", entry(R"({"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]})"), 1,
       "dtype comes twice"},
      {"key_missing", entry(R"({"dtype":"U8","shape":[1]})"), 1, "is missing"},
      {"key_unknown", entry(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1})"), 1, "'x'"},
      {"type_unknown", one(R"("F33")", "[1]", "[0,4]"), 4, "'F33'"},
      {"type_is_number", one("1", "[1]", "[0,4]"), 4, "expected '\"'"},
      {"one_offset", one(R"("U8")", "[2]", "[2]"), 2, "1 data_offsets"},
      {"three_offsets", one(R"("U8")", "[2]", "[0,2,2]"), 2, "3 data_offsets"},
      {"exponent", one(R"("U8")", "[2]", "[0,2e0]"), 2, "expected an integer"},
      {"huge_exponent", one(R"("U8")", "[1e9]", "[0,2]"), 2, "expected an integer"},
      {"fraction", one(R"("U8")", "[1.5]", "[0,2]"), 2, "expected an integer"},
      {"negative", one(R"("U8")", "[-1]", "[0,2]"), 2, "expected an integer"},
      {"plus", one(R"("U8")", "[+2]", "[0,2]"), 2, "expected an integer"},
      {"leading_zero", one(R"("U8")", "[02]", "[0,2]"), 2, "expected an integer"},
      {"null", one(R"("U8")", "null", "[0,2]"), 2, "expected '['"},
      {"beyond_63_bits", one(R"("U8")", "[9223372036854775808]", "[0,2]"), 2, "2^63 - 1"},
      {"control_character", entry("{\"\n\":1}"), 0, "control character"},
      {"ends_in_a_string", "{\"w", 0, "within a string"},
      {"ends_in_an_escape", "{\"w\\", 0, "within a string"},
      {"unknown_escape", R"({"\x":1})", 0, "unknown escape"},
      {"short_hex", R"({"\u00g0":1})", 0, "hexadecimal"},
      {"lone_surrogate", R"({"\ud800x":1})", 0, "surrogate"},
      {"low_surrogate", R"({"\udc00":1})", 0, "surrogate"},
      {"two_high_surrogates", R"({"\ud800\ud800":1})", 0, "surrogate"},
      {"stray_continuation", "{\"\x80\":1}", 0, "UTF-8"},
      {"overlong", "{\"\xc0\xaf\":1}", 0, "UTF-8"},
      {"overlong_three", "{\"\xe0\x80\xaf\":1}", 0, "UTF-8"},
      {"raw_surrogate", "{\"\xed\xa0\x80\":1}", 0, "UTF-8"},
      {"beyond_unicode", "{\"\xf4\x90\x80\x80\":1}", 0, "UTF-8"},
      {"cut_sequence", "{\"\xe2\x82\":1}", 0, "UTF-8"},
  };
}

class hostile_header : public testing::TestWithParam<hostile> {};

TEST_P(hostile_header, is_refused) {
  test::folder const in;
  auto const path = in / "f";
  test::write(path, test::tensor_file(GetParam().header, std::string(GetParam().data, 'x')));
  test::expect_refusal<file_error>([&] { tensor_file f(path); }, {path, GetParam().said});
}

INSTANTIATE_TEST_SUITE_P(tensor_file, hostile_header, testing::ValuesIn(hostile_headers()),
                         [](auto const& tested) { return tested.param.name; });

TEST(tensor_file, refuses_what_is_no_file) {
  test::folder const in;
  test::expect_refusal<file_error>([&] { tensor_file f(in / "none"); }, {"none", "open"});
  test::expect_refusal<file_error>([&] { tensor_file f(in / "."); }, {"no regular file"});
  test::expect_refusal<file_error>([] { tensor_file f("/dev/zero"); }, {"no regular file"});
  for (std::size_t bytes = 0; bytes < 8; ++bytes) {
    test::write(in / "short", std::string(bytes, '\0'));
    test::expect_refusal<file_error>([&] { tensor_file f(in / "short"); }, {"too few"});
  }
}

TEST(tensor_file, reads_names_of_all_kinds) {
  test::folder const in;
  auto const file = [](std::string const& name) {
    return test::tensor_file("{\"" + name + R"(":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
                             "x");
  };
  struct row {
    std::string written, read;
  };
  for (auto const& [written, read] : std::vector<row>{
           {"", ""},
           {R"(a\/\\\"\b\f\n\r\t)", "a/\\\"\b\f\n\r\t"},
           {R"(\u0041\u00e9\u20AC\ud83d\ude00)", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
           {R"(\u0000)", std::string(1, '\0')},
           {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}}) {
    test::write(in / "f", file(written));
    EXPECT_NE(tensor_file(in / "f").find(read), nullptr) << written;
  }
}

TEST(tensor_file, every_mutation_is_refused_or_read_within_its_bounds) {
  test::folder const in;
  std::vector<float> const numbers(64, 1.5f);
  {
    tensor_file_writer to(in / "good",
                          {{"a", stored_type::f32, {4, 16}}, {"b", stored_type::u8, {3}}},
                          {{"k", "v\n"}});
    to.write(0, numbers.data(), 256);
    to.write(1, "xyz", 3);
    to.commit();
  }
  auto const good = test::content(in / "good");
  std::mt19937 random(1);
  auto const below = [&](std::size_t n) { return random() % static_cast<unsigned>(n); };
  std::string const bytes = "{}[]\":,0123456789-.eE\\u \xff\x80\x7f";
  int refused = 0;
  for (int round = 0; round < 6000; ++round) {
    auto file = good;
    for (auto changes = 1 + below(3); changes > 0; --changes) {
      auto const at = below(round % 4 == 0 ? 8 : file.size());
      auto const what = below(5);
      if (what == 0)
        file.resize(at);
      else if (what == 1)
        file.insert(at, 1 + below(3), bytes[below(bytes.size())]);
      else if (what == 2)
        file.erase(at, 1 + below(9));
      else if (what == 3)
        file[at] = static_cast<char>(random());
      else
        file[at] = bytes[below(bytes.size())];
      if (file.size() < 8) file.resize(8);
    }
    test::write(in / "f", file);
    try {
      tensor_file const f(in / "f");
      for (auto const& t : f.tensors()) {
        std::vector<char> all(static_cast<std::size_t>(t.bytes()));
        f.read(t, 0, all.data(), t.bytes());
      }
    } catch (file_error const&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 4000);
  EXPECT_LT(refused, 6000);
}

TEST(tensor_file, reads_parts_and_nothing_beside_them) {
  test::folder const in;
  test::write(in / "f",
              test::tensor_file(R"({"a":{"dtype":"U16","shape":[2],"data_offsets":[0,4]},)"
                                R"("b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})",
                                "0123abc"));
  tensor_file const f(in / "f");
  auto const& b = f.at("b");
  char two[2];
  f.read(b, 1, two, 2);
  EXPECT_EQ(std::string(two, 2), "bc");
  f.read(b, 3, two, 0);
  for (auto const& [first, bytes] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 4}, {3, 1}, {-1, 1}, {0, -1}, {4, 0}, {1, std::numeric_limits<std::int64_t>::max()}})
    test::expect_refusal<file_error>([&, at = first, n = bytes] { f.read(b, at, two, n); },
                                     {"'b'", "of 3"});
  test::expect_refusal<file_error>([&] { f.at("c"); }, {"'c'", "not in the file"});
  std::vector<std::uint16_t> wrong(3);
  std::vector<float> floats(2);
  EXPECT_EQ(f.find("c"), nullptr);
  test::expect_refusal<file_error>([&] { f.read("a", floats); }, {"'a'", "U16 [2]", "2 elements"});
  test::expect_refusal<file_error>([&] { f.read("a", wrong); }, {"'a'", "U16 [2]", "3 elements"});
  std::filesystem::resize_file(in / "f", 8);
  test::expect_refusal<file_error>([&] { f.read(b, 0, two, 2); }, {"'b'", "shorter"});
}

TEST(tensor_file, holds_more_than_32_bits_count) {
  test::folder const in;
  constexpr std::int64_t n = (std::int64_t{1} << 32) + 5;
  std::string const header = R"({"a":{"dtype":"U8","shape":[)" + std::to_string(n) +
                             R"(],"data_offsets":[0,)" + std::to_string(n) + "]}}";
  test::write(in / "f", test::tensor_file(header, ""));
  std::filesystem::resize_file(in / "f", 8 + header.size() + static_cast<std::uint64_t>(n));
  std::fstream(in / "f", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-2, std::ios::end)
      .write("xy", 2);
  tensor_file const f(in / "f");
  char last[3];
  f.read(f.at("a"), n - 3, last, 3);
  EXPECT_EQ(std::string(last, 3), std::string("\0xy", 3));
}

TEST(tensor_file_writer, gives_what_is_read_back_aligned_and_in_any_order) {
  test::folder const in;
  std::vector<double> const doubles{1, 2};
  std::vector<float> const floats{3, 4, 5};
  for (int again = 0; again < 2; ++again) {
    tensor_file_writer to(in / "f",
                          {{"b\"\\\n", stored_type::u8, {3}},
                           {"f", stored_type::f32, {3, 1}},
                           {"none", stored_type::f32, {0, 7}},
                           {"\xc3\xa9", stored_type::f64, {2}},
                           {"scalar", stored_type::u16, {}}},
                          {{"k", "v"}, {"\"", "\x01"}});
    to.write(4, "12", 2);
    to.write(3, doubles.data(), 16);
    to.write(0, "x", 1);
    to.write(1, floats.data(), 12);
    to.write(0, "yz", 2);
    EXPECT_EQ(in.files(), 1 + again);
    to.commit();
    EXPECT_EQ(in.files(), 1);
  }
  tensor_file const f(in / "f");
  EXPECT_EQ(*f.word("\""), "\x01");
  EXPECT_EQ(f.word("x"), nullptr);
  EXPECT_EQ(f.at("f").shape, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(f.at("none").count(), 0);
  std::vector<float> read_floats(3);
  f.read("f", read_floats);
  EXPECT_EQ(read_floats, floats);
  std::vector<double> read_doubles(2);
  f.read("\xc3\xa9", read_doubles);
  EXPECT_EQ(read_doubles, doubles);
  char text[3];
  f.read(f.at("b\"\\\n"), 0, text, 3);
  EXPECT_EQ(std::string(text, 3), "xyz");
  for (auto const& t : f.tensors()) EXPECT_EQ(t.begin % bytes_of(t.type), 0) << t.name;
  auto const header = static_cast<unsigned char>(test::content(in / "f")[0]);
  EXPECT_EQ(header % 8, 0);
}

TEST(tensor_file_writer, leaves_the_old_file_and_nothing_else_where_it_does_not_commit) {
  test::folder const in;
  test::write(in / "f", "old");
  std::vector<stored_tensor> const one{{"a", stored_type::u8, {4}}};
  { tensor_file_writer const to(in / "f", one); }
  {
    tensor_file_writer to(in / "f", one);
    to.write(0, "12", 2);
    test::expect_refusal<memfit::argument_error>([&] { to.commit(); }, {"'a'", "2", "4"});
    test::expect_refusal<memfit::argument_error>([&] { to.write(0, "123", 3); }, {"'a'", "2 + 3"});
    test::expect_refusal<memfit::argument_error>([&] { to.write(1, "1", 1); }, {"1 of 1"});
  }
  EXPECT_EQ(test::content(in / "f"), "old");
  EXPECT_EQ(in.files(), 1);
}

TEST(tensor_file_writer, survives_a_full_disk) {
  test::folder const in;
  test::write(in / "f", "old");
  auto* const before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit const small{1000, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::string const data(4000, 'x');
  test::expect_refusal<file_error>(
      [&] {
        tensor_file_writer to(in / "f", {{"a", stored_type::u8, {4000}}});
        to.write(0, data.data(), 4000);
      },
      {in / "f", "write"});
  test::expect_refusal<file_error>(
      [&] {
        tensor_file_writer to(in / "f", {}, {{"k", std::string(2000, 'x')}});
      },
      {"write"});
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(test::content(in / "f"), "old");
  EXPECT_EQ(in.files(), 1);
}

TEST(tensor_file_writer, refuses_what_no_file_can_hold) {
  test::folder const in;
  using memfit::argument_error;
  auto const writes = [&](std::vector<stored_tensor> const& tensors,
                          memfit::stored_words const& words = {}) {
    return [&in, tensors, words] { tensor_file_writer const to(in / "f", tensors, words); };
  };
  constexpr auto u8 = stored_type::u8;
  std::int64_t const huge = std::int64_t{1} << 62;
  test::expect_refusal<argument_error>(writes({{"a", u8}, {"a", u8}}), {"'a'", "twice"});
  test::expect_refusal<argument_error>(writes({{"\xff", u8}}), {"UTF-8"});
  test::expect_refusal<argument_error>(writes({{"__metadata__", u8}}), {"reserved"});
  test::expect_refusal<argument_error>(writes({}, {{"k", "1"}, {"k", "2"}}), {"'k'", "twice"});
  test::expect_refusal<argument_error>(writes({}, {{"k", "\xff"}}), {"'k'", "UTF-8"});
  test::expect_refusal<argument_error>(writes({{"a", u8, {-1}}}), {"'a'", "U8 [-1]"});
  test::expect_refusal<argument_error>(writes({{"a", u8, {huge, 4}}}), {"'a'", "2^63"});
  test::expect_refusal<argument_error>(writes({{"a", u8, {huge}}, {"b", u8, {huge}}}), {"'b'"});
  test::expect_refusal<file_error>([] { tensor_file_writer const to("/dev/null", {}); },
                                   {"/dev/null", "no regular file"});
  test::expect_refusal<file_error>([&] { tensor_file_writer const to(in / "no/f", {}); },
                                   {"no/f", "create"});
  EXPECT_EQ(in.files(), 0);
}

}  // namespace
