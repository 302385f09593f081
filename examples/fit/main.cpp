#include <memfit/core/error.hpp>
#include <memfit/fit/plan.hpp>
#include <memfit/fit/transformer.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "../gpt2/user_error.hpp"
#include "../shared/terminal.hpp"
#include "options.hpp"
#include "report.hpp"
#include "words.hpp"

namespace {

enum status { success = 0, failed = 1, wrong_use = 2, does_not_fit = 3 };

status fail(status s, const char* what) {
  std::fprintf(stderr, "memfit_fit: %s\n", what);
  return s;
}

advice::answer answered(const advice::options& asked) {
  auto found =
      memfit::fit::plans(memfit::fit::transformer(asked.shape), asked.device, asked.wanted);
  auto const element = found.plain.training.column.element_bytes;
  return {found.plain.bytes.parameters / element, std::move(found)};
}

// The closest precision below the one wanted with which something fits.
std::string lower_precision_that_fits(advice::options asked) {
  using enum memfit::fit::precision;
  for (auto const precision : {bits24, bits16}) {
    if (precision >= asked.wanted.precision) continue;
    asked.wanted.precision = precision;
    if (!answered(asked).found.nearest) return std::string{advice::name_of(precision)};
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto const line = advice::parse(argc, argv);
    if (!line.question) {
      std::printf("%s", line.text.c_str());
      return success;
    }
    auto const& asked = *line.question;
    auto const found = answered(asked);
    auto const width = shared::terminal_columns().value_or(100);
    std::printf("%s", (asked.json ? as_json(asked, found) : as_text(asked, found, width)).c_str());
    if (!found.found.nearest) return success;
    auto const lower = lower_precision_that_fits(asked);
    return fail(does_not_fit, (refusal(asked, found) +
                               (lower.empty() ? "" : "; with --precision " + lower + " it fits"))
                                  .c_str());
  } catch (const gpt2::user_error& wrong) {
    return fail(wrong_use, wrong.what());
  } catch (const memfit::argument_error& wrong) {
    return fail(wrong_use, wrong.what());
  } catch (const std::exception& other) {
    return fail(failed, other.what());
  }
}
