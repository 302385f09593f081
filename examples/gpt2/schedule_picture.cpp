#include "schedule_picture.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "progress.hpp"
#include "schedule_state.hpp"

namespace gpt2 {

namespace {

using memfit::checkpoint::act;
using memfit::checkpoint::action;
using memfit::checkpoint::chain;
using memfit::checkpoint::schedule;

// In rising order of what a character that stands for several stages shows.
enum glyph : std::uint8_t { nothing, copied, kept, saved, passed, ran, reversed };
constexpr std::array<std::string_view, 7> glyphs{"·", "◌", "○", "█", "▷", "▶", "◀"};

// The compute actions from one position on that go on in one direction, and what lies between.
std::size_t end_of_sweep(const std::vector<action>& actions, std::size_t first) {
  const action* last = nullptr;
  std::size_t i = first;
  for (; i < actions.size(); ++i) {
    auto const& a = actions[i];
    if (a.what == act::load && last != nullptr) break;
    if (!is_compute(a.what)) continue;
    if (last != nullptr && (is_forward(a.what) != is_forward(last->what) ||
                            a.index != last->index + (is_forward(a.what) ? 1 : -1)))
      break;
    last = &a;
  }
  return i;
}

glyph glyph_of(act computed) {
  return computed == act::pass ? passed : computed == act::run ? ran : reversed;
}

glyph glyph_of(const schedule_state& state, std::size_t stage) {
  if (state.saved(stage)) return saved;
  if (stage > 0 && state.kept(stage)) return kept;
  return state.copied(stage) ? copied : nothing;
}

constexpr int bar_cells = 10;
constexpr int beside_the_cells = 7 + bar_cells + 2 + 8;

std::string bar(std::int64_t bytes, std::int64_t peak) {
  int const filled =
      peak == 0 ? 0
                : static_cast<int>(
                      static_cast<double>(bytes) / static_cast<double>(peak) * bar_cells + 0.5);
  std::string text;
  for (int i = 0; i < bar_cells; ++i) text += i < filled ? "▇" : " ";
  return text;
}

std::string numbered(std::size_t row, const std::string& cells, std::int64_t bytes,
                     std::int64_t peak) {
  std::array<char, 16> number{};
  std::snprintf(number.data(), number.size(), "%5zu  ", row);
  return number.data() + cells + "  " + bar(bytes, peak) + " " + readable_bytes(bytes) + "\n";
}

// Each cell stands for `per_cell` stages.
std::string cells(const std::vector<glyph>& stages, std::size_t per_cell) {
  std::string row;
  for (std::size_t i = 0; i < stages.size(); i += per_cell) {
    auto const end =
        stages.begin() + static_cast<std::ptrdiff_t>(std::min(i + per_cell, stages.size()));
    row += glyphs[*std::max_element(stages.begin() + static_cast<std::ptrdiff_t>(i), end)];
  }
  return row;
}

struct sweep {
  std::vector<glyph> stages;
  std::int64_t bytes = 0;
};

sweep play(schedule_state& state, const std::vector<action>& actions, std::size_t first,
           std::size_t end, std::size_t stages) {
  sweep s{std::vector<glyph>(stages, nothing)};
  for (std::size_t i = first; i < end; ++i) {
    s.bytes = std::max(s.bytes, state.apply(actions[i]));
    if (is_compute(actions[i].what))
      s.stages[static_cast<std::size_t>(actions[i].index)] = glyph_of(actions[i].what);
  }
  for (std::size_t i = 0; i < stages; ++i)
    if (s.stages[i] == nothing) s.stages[i] = glyph_of(state, i);
  return s;
}

constexpr std::size_t most_rows = 200;

}  // namespace

std::string picture(const chain& stages, const schedule& plan, int width) {
  std::size_t const room = static_cast<std::size_t>(std::max(width - beside_the_cells, 8));
  std::size_t const per_cell = std::max<std::size_t>((stages.size() + room - 1) / room, 1);
  std::string text = "▷ computed  ▶ computed, its results saved  ◀ backward  █ saved  ○ kept";
  if (plan.second_peak > 0) text += "  ◌ stored elsewhere";
  text += "\n";
  if (per_cell > 1) text += "each sign stands for " + std::to_string(per_cell) + " stages\n";
  schedule_state state{stages};
  std::size_t rows = 0, end = 0;
  for (std::size_t first = 0; first < plan.actions.size(); first = end) {
    end = end_of_sweep(plan.actions, first);
    auto const row = play(state, plan.actions, first, end, stages.size());
    if (++rows <= most_rows)
      text += numbered(rows, cells(row.stages, per_cell), row.bytes, plan.peak);
  }
  if (rows > most_rows) text += "       and " + std::to_string(rows - most_rows) + " rows more\n";
  return text;
}

}  // namespace gpt2
