// A rule that declares two slots and takes three.
// expect: slot
#include <memfit/memfit.hpp>

#include <array>
#include <cstdint>
#include <vector>

#ifdef MEMFIT_FAIL
constexpr int taken = 3;
#else
constexpr int taken = 2;
#endif

struct forgetful {
  double lr = 1e-3;
  static constexpr std::array<memfit::slot, 2> slots{
      {{"first", memfit::range::any}, {"second", memfit::range::any}}};
  struct constants {
    float lr;
    template <class F>
    MEMFIT_HD void operator()(F& p, F g, F (&s)[taken]) const {
      s[1] = s[0];
      s[0] = g;
      p = memfit::fma(-lr, s[0], p);
    }
  };
  constants at(std::int64_t) const { return {static_cast<float>(lr)}; }
};

int main() {
  std::vector<std::vector<float>> params(1);
  memfit::optimizer<forgetful, memfit::float8> opt{memfit::host{}, {}, params};
}
