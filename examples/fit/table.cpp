#include "table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "../shared/bytes.hpp"
#include "words.hpp"

namespace advice {

namespace fit = memfit::fit;
using shared::readable_bytes;

namespace {

struct category {
  char letter;
  const char* name;
  std::int64_t (*of)(fit::bytes const&);
};

constexpr std::array categories{
    category{'P', "parameters", [](fit::bytes const& b) { return b.parameters; }},
    category{'K', "kept beside them", [](fit::bytes const& b) { return b.kept; }},
    category{'G', "gradients", [](fit::bytes const& b) { return b.gradients; }},
    category{'S', "sums", [](fit::bytes const& b) { return b.sums; }},
    category{'M', "moments, scales", [](fit::bytes const& b) { return b.states(); }},
    category{'A', "activations", [](fit::bytes const& b) { return b.activations; }},
    category{'W', "workspace", [](fit::bytes const& b) { return b.workspace + b.communication; }}};

constexpr std::size_t label_width = 22, cell_width = 11;

std::string row(std::string label, std::vector<column> const& columns, auto const& cell) {
  label.resize(label_width, ' ');
  for (auto const& c : columns) {
    std::string const text = cell(c);
    label.append(text.size() < cell_width ? cell_width - text.size() : 1, ' ') += text;
  }
  return label + "\n";
}

}  // namespace

std::string table(std::vector<column> const& columns) {
  auto text = row("", columns, [](column const& c) { return c.heading; });
  for (auto const& category : categories)
    if (std::any_of(columns.begin(), columns.end(),
                    [&](column const& c) { return category.of(c.bytes) != 0; }))
      text += row(std::string{category.letter, ' '} + category.name, columns,
                  [&](column const& c) { return readable_bytes(category.of(c.bytes)); });
  text += row("  total", columns, [](column const& c) { return readable_bytes(c.bytes.total()); });
  return text + row("  a step takes about", columns,
                    [](column const& c) { return readable_seconds(c.seconds); });
}

std::string bars(std::vector<column> const& columns, std::int64_t available, int width) {
  std::size_t widest = 0;
  for (auto const& c : columns) widest = std::max(widest, c.heading.size());
  auto const cells = static_cast<std::size_t>(std::max(width - static_cast<int>(widest) - 3, 20));
  auto const per_byte = static_cast<double>(cells) / static_cast<double>(available);
  std::string text;
  for (auto const& c : columns) {
    std::string bar;
    double bytes = 0;
    for (auto const& category : categories) {
      bytes += static_cast<double>(category.of(c.bytes));
      auto const end = static_cast<std::size_t>(std::llround(std::min(bytes * per_byte, 1e6)));
      bar.resize(std::max(bar.size(), std::min(end, cells)), category.letter);
    }
    bar.resize(cells, ' ');
    text += c.heading + std::string(widest - c.heading.size() + 1, ' ') + "|" + bar +
            (c.bytes.total() > available ? ">" : "|") + "\n";
  }
  return text;
}

}  // namespace advice
