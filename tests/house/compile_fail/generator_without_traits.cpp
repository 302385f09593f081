// A random generator whose state memfit cannot read.
// expect: a generator needs memfit::generator_traits<G> with get\(G const&\) and set\(G&, state\)
#include <memfit/checkpoint/plan.hpp>
#include <memfit/checkpoint/run.hpp>
#include <memfit/exec/host.hpp>

#include <random>

#ifndef MEMFIT_FAIL
template <>
struct memfit::generator_traits<std::mt19937> {
  static std::mt19937 get(std::mt19937 const& g) { return g; }
  static void set(std::mt19937& g, std::mt19937 const& state) { g = state; }
};
#endif

int main() {
  std::mt19937 generator;
  memfit::checkpoint::chain const stages(3);
  memfit::checkpointed run{
      memfit::host{}, stages, memfit::checkpoint::keep_all(stages), {.generator = generator}};
}
