#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdio>
#include <cstdlib>
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

// GNU OpenMP's threads spin for milliseconds before they sleep, which on a busy machine takes the
// processor from the very thread they wait for. It reads how long from the environment before main
// begins; so, unless someone has set that, set it and begin again.
void spin_briefly(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "2000", 0);
  execv("/proc/self/exe", argv);
}

}  // namespace

// The heap gives large blocks back as soon as they are free, and reserves no room for each thread.
void hold_nothing_back() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  mallopt(M_ARENA_MAX, 1);
#endif
}

int main(int argc, char** argv) {
  spin_briefly(argv);
  hold_nothing_back();
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
