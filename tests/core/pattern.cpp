// Patterns of names: what * and ? stand for, and that none takes long.
#include "memfit/core/pattern.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

struct row {
  char const *pattern, *name;
  bool fits;
};

TEST(pattern, table) {
  row const rows[] = {{"wte", "wte", true},
                      {"wte", "wte.weight", false},
                      {"wte", "xwte", false},
                      {"wte*", "wte", true},
                      {"wte*", "wte.weight", true},
                      {"*bias", "bias", true},
                      {"*bias", "h.0.bias", true},
                      {"*bias", "h.0.bias.x", false},
                      {"*bias", "bias bias", true},
                      {"h.*.ln?.*", "h.11.ln2.weight", true},
                      {"h.*.ln?.*", "h.11.ln.weight", false},
                      {"h.?.*", "h.11.ln2.weight", false},
                      {"?", "x", true},
                      {"??", "x", false},
                      {"*a*b*", "xaxxbx", true},
                      {"*a*b*", "xbxxax", false},
                      {"*aab", "aaaab", true},
                      {"**", "x", true},
                      {"*?*?*", "x", false},
                      {"*?*?*", "xy", true},
                      {"a.b", "a+b", false},
                      {"[ab]", "a", false},
                      {"[ab]", "[ab]", true},
                      {"\\*", "*", false},
                      {"", "x", false},
                      {"WTE", "wte", false}};
  for (auto const& r : rows)
    EXPECT_EQ(memfit::matches(r.pattern, r.name), r.fits) << r.pattern << " for " << r.name;
}

TEST(pattern, no_pattern_fits_a_tensor_without_a_name) {
  for (char const* pattern : {"", "*", "**", "?"})
    EXPECT_FALSE(memfit::matches(pattern, "")) << pattern;
}

TEST(pattern, takes_product_of_the_lengths_at_most) {
  std::string stars;
  for (int i = 0; i < 100; ++i) stars += "a*";
  EXPECT_FALSE(memfit::matches(stars + "b", std::string(10'000, 'a')));
}

TEST(pattern, of_several_one_must_fit) {
  std::vector<std::string> const patterns{"*bias", "ln?"};
  EXPECT_TRUE(memfit::matches_any(patterns, "h.0.bias"));
  EXPECT_TRUE(memfit::matches_any(patterns, "ln1"));
  EXPECT_FALSE(memfit::matches_any(patterns, "wte"));
  EXPECT_FALSE(memfit::matches_any(std::vector<std::string>{}, "wte"));
}

}  // namespace
