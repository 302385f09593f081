#include <cstdio>
#include <exception>
#include <new>

#include "interrupt.hpp"
#include "options.hpp"
#include "trainer.hpp"
#include "user_error.hpp"

namespace {

enum status { success = 0, failed = 1, wrong_use = 2, stopped = 130 };

status fail(status s, const char* what) {
  std::fprintf(stderr, "gpt2_train: %s\n", what);
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto const line = gpt2::parse(argc, argv);
    if (!line.train) {
      std::printf("%s", line.text.c_str());
      return success;
    }
    gpt2::catch_interrupts();
    return gpt2::train(*line.train) == gpt2::outcome::finished ? success : stopped;
  } catch (const gpt2::user_error& wrong) {
    return fail(wrong_use, wrong.what());
  } catch (const std::bad_alloc&) {
    return fail(wrong_use, "not enough memory for a model and batch of these sizes");
  } catch (const std::exception& other) {
    return fail(failed, other.what());
  }
}
