// What a runtime that counts says of launches and waits; others say nothing.
// Used by tests that want few of the one and none of the other.
#pragma once

#include <dlfcn.h>

namespace test {

inline long long counted(char const* what) {
  using counter = unsigned long long (*)();
  auto const count = reinterpret_cast<counter>(dlsym(RTLD_DEFAULT, what));
  return count != nullptr ? static_cast<long long>(count()) : -1;
}
/// Kernels launched so far, or -1.
inline long long launches() {
  return counted("ptxsim_launches");
}
/// Calls so far after which the host has waited, or -1.
inline long long waits() {
  return counted("ptxsim_sync_calls");
}

}  // namespace test
