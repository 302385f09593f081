// A mistake that the person at the command line can mend; main prints it as one line and exits with
// status 2. Thrown by options, data, log and trainer of the GPT-2 example.
#pragma once

#include <stdexcept>

namespace gpt2 {

class user_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gpt2
