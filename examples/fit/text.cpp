#include <memfit/fit/transformer.hpp>

#include <algorithm>
#include <array>

#include "../shared/bytes.hpp"
#include "report.hpp"
#include "table.hpp"
#include "words.hpp"

namespace advice {

namespace fit = memfit::fit;
using shared::readable_bytes;

namespace {

std::string with_commas(std::int64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

// Empty where the model is none that gpt2_train knows by name, or it lacks a technique.
std::string gpt2_command(options const& asked, fit::plan const& p) {
  if (asked.shape.family != fit::family::gpt2) return "";
  auto const known = fit::known_models();
  auto const options = gpt2_options_of(p);
  bool const by_name = std::any_of(known.begin(), known.end(), [&](auto const& shape) {
    return shape.name == asked.shape.name;
  });
  return by_name && options ? "gpt2_train --model " + asked.shape.name + " " + joined(*options)
                            : "";
}

std::string described(options const& asked, fit::plan const& p, std::string const& heading) {
  auto text = "\n" + heading + ": " + readable_bytes(p.bytes.total()) + ", about " +
              readable_seconds(p.seconds) + " per step\n";
  for (auto const& technique : p.techniques)
    text += "  + " + technique.name + ": " + cost_of(technique) + "\n";
  if (p.techniques.empty()) text += "  nothing needs to be switched on\n";
  for (auto const& line : what_to_use(p)) text += "    " + line + "\n";
  auto const command = gpt2_command(asked, p);
  return command.empty() ? text : text + "    " + command + "\n";
}

}  // namespace

std::string refusal(options const& asked, answer const& a) {
  auto const& nearest = a.found.nearest->bytes;
  return asked.shape.name + " does not fit into " + readable_bytes(a.found.bytes) +
         ": the least that it takes is " + readable_bytes(nearest.total()) + ", " +
         std::to_string(a.found.missing) + " bytes (" + readable_bytes(a.found.missing) +
         ") are missing";
}

std::string as_text(options const& asked, answer const& a, int width) {
  auto text = asked.shape.name + ": " + with_commas(a.parameters) + " parameters, " +
              std::to_string(asked.wanted.batch) + " windows of " +
              std::to_string(asked.wanted.seq) + " tokens per step\n" + asked.device.name + ": " +
              readable_bytes(a.found.bytes) + " to use\n\n";
  std::vector<column> columns{{"plain", a.found.plain.bytes, a.found.plain.seconds}};
  std::vector<fit::plan> shown(a.found.plans.begin(),
                               a.found.plans.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                           asked.top, a.found.plans.size())));
  for (auto const& p : shown)
    columns.push_back({"plan " + std::to_string(columns.size()), p.bytes, p.seconds});
  if (a.found.nearest)
    columns.push_back({"nearest", a.found.nearest->bytes, a.found.nearest->seconds});
  text += table(columns) + "\n" + bars(columns, a.found.bytes, width);
  for (std::size_t i = 0; i < shown.size(); ++i)
    text += described(asked, shown[i], "plan " + std::to_string(i + 1));
  if (a.found.nearest) text += described(asked, *a.found.nearest, "nearest");
  return text;
}

}  // namespace advice
