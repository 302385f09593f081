// What an optimizer holds, in numbers and as a table for people.
// Used by the optimizer, which fills it in, and by whoever asks where the memory went.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memfit {

namespace detail {

/// What the tensors of an optimizer share: step counters, in rows, and a count of elements left
/// alone.
inline constexpr std::int64_t counter_bytes = 8, counters_in_row = 512;

constexpr std::int64_t shared_bytes(std::int64_t tensors) {
  auto const rows = tensors / counters_in_row + (tensors % counters_in_row != 0);
  return (rows * counters_in_row + 1) * counter_bytes;
}

}  // namespace detail

/// One tensor as an optimizer holds it; bytes are those allocated.
struct tensor_description {
  std::string name;
  std::int64_t count = 0;
  bool quantized = false;            ///< its moments have the optimizer's format, else fp32
  std::int64_t parameter_bytes = 0;  ///< what the model reads; the user's own memory
  std::int64_t kept_bytes = 0;       ///< master copy or remainder beside it
  std::int64_t state_bytes = 0;      ///< codes and scales of all moments
  std::size_t group = 0;             ///< of hyper-parameters
  bool frozen = false;               ///< it takes no part in steps
};

/// All tensors of an optimizer, and the sums over them.
struct description {
  std::vector<tensor_description> tensors;
  std::int64_t parameter_bytes = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t state_bytes = 0;
  /// Step counters, in rows of 512, and what the executor needs to know the tensors.
  std::int64_t shared_bytes = 0;

  /// A table for people: a line per tensor, then the sums.
  std::string text() const {
    std::string out;
    for (auto const& t : tensors)
      out += line(t.name.empty() ? "(unnamed)" : t.name, t.quantized ? "quantized" : "fp32", t);
    tensor_description sum;
    for (auto const& t : tensors) sum.count += t.count;
    sum.parameter_bytes = parameter_bytes;
    sum.kept_bytes = kept_bytes;
    sum.state_bytes = state_bytes;
    return out + line("total", "", sum) + "and " + std::to_string(shared_bytes) +
           " B of counters and lists that all share\n";
  }

 private:
  static std::string line(std::string text, char const* moments, tensor_description const& t) {
    auto column = [&text](std::string const& cell, std::size_t end) {
      auto const start = end > cell.size() ? end - cell.size() : 0;
      text.resize(text.size() < start ? start : text.size() + 1, ' ');
      text += cell;
    };
    column(moments, 34);
    column(std::to_string(t.count) + " elements", 54);
    column("parameters " + std::to_string(t.parameter_bytes) + " B", 80);
    column("kept " + std::to_string(t.kept_bytes) + " B", 100);
    column("states " + std::to_string(t.state_bytes) + " B", 122);
    if (t.group != 0) text += "  group " + std::to_string(t.group);
    if (t.frozen) text += "  frozen";
    return text + "\n";
  }
};

}  // namespace memfit
