#include "words.hpp"

#include <cctype>
#include <cmath>

#include "../shared/bytes.hpp"
#include "../shared/text.hpp"

namespace advice {

namespace fit = memfit::fit;
using shared::readable_bytes;
using shared::text;

namespace {

// Every name of a spelled type, in memfit's namespace.
std::string qualified(std::string_view type) {
  std::string result;
  char before = ' ';
  for (char const c : type) {
    bool const inside = std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_';
    if (!inside && std::isalpha(static_cast<unsigned char>(c)) != 0) result += "memfit::";
    result += before = c;
  }
  return result;
}

}  // namespace

std::string optimizer_type(fit::training const& t) {
  auto list = t.states.rule + ", " + t.states.format;
  if (t.column.name != "fp32") list += ", " + t.column.name;
  return "memfit::optimizer<" + qualified(list) + ">";
}

words what_to_use(fit::plan const& p) {
  auto const& t = p.training;
  words lines{optimizer_type(t)};
  if (t.accumulation == fit::accumulation::fp32)
    lines.emplace_back("memfit::gradient_accumulator<>");
  if (t.accumulation == fit::accumulation::bf16)
    lines.emplace_back("memfit::gradient_accumulator<memfit::stochastic<memfit::bf16>>");
  if (t.gradient_release)
    lines.push_back(std::string{"memfit::gradient_release"} +
                    (t.accumulation == fit::accumulation::folded
                         ? ", begin_folded and micro_batch for each window"
                         : ""));
  if (p.kept == fit::activations::selective)
    lines.emplace_back("memfit::checkpointed, every stage in the variant that saves least");
  if (p.kept == fit::activations::checkpoints)
    lines.push_back("memfit::checkpointed with memfit::checkpoint::within(chain, " +
                    std::to_string(p.bytes.activations) + ")");
  return lines;
}

std::string cost_of(fit::technique const& t) {
  auto line = readable_bytes(std::abs(t.saves)) + (t.saves < 0 ? " more" : " less");
  if (std::abs(t.seconds) >= 5e-4)
    line += ", " + readable_seconds(std::abs(t.seconds)) + (t.seconds > 0 ? " slower" : " faster");
  return line + "; " + t.effect + (t.loss > 0 ? text("; losses within %g %%", 100 * t.loss) : "");
}

std::string readable_seconds(double seconds) {
  if (seconds < 0.9995) return text(seconds < 0.01 ? "%.1f ms" : "%.0f ms", 1000 * seconds);
  if (seconds < 600) return text("%.3g s", seconds);
  return seconds < 36000 ? text("%.3g min", seconds / 60) : text("%.3g h", seconds / 3600);
}

std::string_view name_of(fit::accumulation a) {
  using enum fit::accumulation;
  return a == none ? "none" : a == fp32 ? "fp32" : a == bf16 ? "bf16" : "folded";
}

std::string_view name_of(fit::activations a) {
  using enum fit::activations;
  return a == all ? "all" : a == selective ? "selective" : "checkpoints";
}

std::string_view name_of(fit::precision p) {
  using enum fit::precision;
  return p == exact ? "exact" : p == bits24 ? "24" : "16";
}

std::string joined(words const& all) {
  std::string line;
  for (auto const& word : all) (line += line.empty() ? "" : " ") += word;
  return line;
}

}  // namespace advice
