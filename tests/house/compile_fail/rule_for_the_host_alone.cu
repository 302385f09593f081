// A rule whose constants or whose update cannot be had on the device.
// expect: __host__ function\("host_rule::at.*begin_steps
// expect: __host__ function\("void host_rule::constants::operator.*warp_step
#include <array>
#include <vector>

#include <memfit/memfit.cuh>

#ifdef MEMFIT_FAIL
#define DEVICE
#else
#define DEVICE MEMFIT_HD
#endif

struct host_rule {
  double lr = 0.1;
  static constexpr std::array<memfit::slot, 1> slots{{{"buffer", memfit::range::any}}};
  struct constants {
    float lr;
    template <class F>
    DEVICE void operator()(F& p, F g, F (&s)[1]) const {
      s[0] = g;
      p = memfit::fma(-lr, g, p);
    }
  };
  DEVICE constants at(std::int64_t) const { return {static_cast<float>(lr)}; }
};

int main() {
  std::vector<memfit::tensor_ref<float>> params;
  memfit::optimizer<host_rule, memfit::float8> opt{memfit::cuda{}, {}, params};
}
