#include "interrupt.hpp"

#include <csignal>

namespace gpt2 {

namespace {

volatile std::sig_atomic_t requested = 0;

void request(int) {
  requested = 1;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = request;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return requested != 0;
}

}  // namespace gpt2
