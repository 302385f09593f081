// Prints how many parameters per nanosecond one thread steps when everything is in its cache: the
// best of many tries. Built by generic_build.py, once for any x86-64 and once for this machine.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "memfit/exec/host.hpp"
#include "memfit/optimizer.hpp"

int main() {
  constexpr std::size_t n = 65536;
  std::vector<std::vector<float>> parameters(1, std::vector<float>(n, 0.5f)), gradients(1);
  std::uint32_t seed = 1;
  for (std::size_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    gradients[0].push_back(static_cast<float>(seed >> 8) * 0x1p-24f - 0.499f);
  }
  memfit::optimizer<memfit::adamw, memfit::float8> opt{memfit::host{1}, {.lr = 1e-6}, parameters};
  double best = 1e9;
  for (int i = 0; i < 4000; ++i) {
    auto const start = std::chrono::steady_clock::now();
    opt.step(gradients);
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
    if (took.count() < best) best = took.count();
  }
  std::printf("%.4f\n", static_cast<double>(n) / best * 1e-9);
}
