// Expects that memfit refuses a call with a message that a user can act on.
// Used by the tests of contracts, wherever arguments do not fit together.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "memfit/core/error.hpp"

namespace test {

/// f throws an Error (a memfit::error) whose message contains every one of `parts`.
template <class Error = memfit::error, class F>
void expect_refusal(F&& f, std::initializer_list<std::string_view> parts) {
  static_assert(std::is_base_of_v<memfit::error, Error>);
  try {
    f();
  } catch (Error const& e) {
    std::string_view const message = e.what();
    for (auto part : parts)
      EXPECT_NE(message.find(part), message.npos) << "'" << part << "' is not in: " << message;
    return;
  } catch (std::exception const& e) {
    ADD_FAILURE() << "refused with another type of exception: " << e.what();
    return;
  }
  ADD_FAILURE() << "not refused";
}

}  // namespace test
