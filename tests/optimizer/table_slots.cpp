// The table's rows for the default format, and for slots of different formats: block sizes from 32
// to 1024 in one pass, two codes to a byte, 16-bit scales, second moments rounded at random.
#include "optimizer/table.hpp"

namespace {

using memfit::per_slot, memfit::blocked, memfit::companded8, memfit::dynamic8, memfit::packed4,
    memfit::root8;

/// What rows of one format have shown for every kind of input is shown here for some.
template <class Rule, class Format>
void short_row(Rule const& rule) {
  using test::kind;
  for (auto k : {kind::lognormal, kind::sparse}) test::follows_the_reference<Rule, Format>(rule, k);
  for (auto k : {kind::lognormal, kind::mixed}) test::same_bits_everywhere<Rule, Format>(rule, k);
}

TEST(table_slots, adamw_in_root8) {
  test::row<memfit::adamw, root8>(test::table_adamw);
}
TEST(table_slots, adamw_in_companded8_and_packed4) {
  short_row<memfit::adamw, per_slot<companded8, packed4>>(test::table_adamw);
}
TEST(table_slots, ademamix_in_packed4_root8_and_blocks_of_1024) {
  using formats = per_slot<packed4, root8, blocked<dynamic8, 1024>>;
  short_row<memfit::ademamix, formats>(test::table_ademamix);
}

}  // namespace
