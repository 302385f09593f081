// The answer to a question, as text for a person and as JSON.
// Used by memfit_fit's main.
#pragma once

#include <memfit/fit/plan/types.hpp>

#include <cstdint>
#include <string>

#include "options.hpp"

namespace advice {

struct answer {
  std::int64_t parameters = 0;
  memfit::fit::plan_list found;
};

std::string as_text(options const& asked, answer const& a, int width);
std::string as_json(options const& asked, answer const& a);

// Where nothing fits: what is missing.
std::string refusal(options const& asked, answer const& a);

}  // namespace advice
