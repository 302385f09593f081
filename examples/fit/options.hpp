// The command line of memfit_fit, checked.
// Used by its main.
#pragma once

#include <memfit/fit/device.hpp>
#include <memfit/fit/plan/types.hpp>
#include <memfit/fit/transformer/shape.hpp>

#include <optional>
#include <string>

namespace advice {

struct options {
  memfit::fit::transformer_shape shape;
  memfit::fit::device device;
  memfit::fit::wanted wanted;
  std::size_t top = 3;
  bool json = false;
};

// What `parse` found: a question, or a text (help) to print and stop after.
struct command_line {
  std::optional<options> question;
  std::string text;
};

// Throws gpt2::user_error or memfit::error where the command line is wrong.
command_line parse(int argc, const char* const* argv);

}  // namespace advice
