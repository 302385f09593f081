// memfit's AdamW steps behind a C interface, one optimizer at a time and one tensor each.
// Used by peers.py, which times them beside other libraries' steps in its own process.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>

#include "../cases.hpp"
#include "memfit/memfit.hpp"

namespace {

/// An optimizer of any format, as what peers.py asks of it.
struct stepper {
  std::function<void(memfit::tensor_ref<float const>)> step;
  std::int64_t count, state_bytes;
};

struct settings {
  double lr, beta1, beta2, eps, weight_decay;
};

template <class Format>
stepper make(settings const& s, memfit::tensor_ref<float> parameter, int threads) {
  memfit::adamw const rule{
      .lr = s.lr, .beta1 = s.beta1, .beta2 = s.beta2, .eps = s.eps, .weight_decay = s.weight_decay};
  auto const all =
      std::make_shared<memfit::optimizer<memfit::adamw, Format>>(memfit::host{threads}, rule);
  all->add(parameter);
  return {[all](memfit::tensor_ref<float const> gradient) { all->step_one(0, gradient); },
          parameter.count, all->describe().state_bytes};
}

/// Runs a body; what it throws is said, and becomes `otherwise`: C has no exceptions.
template <class Body, class Result>
Result saying(Body const& body, Result otherwise) {
  try {
    return body();
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return otherwise;
  }
}

}  // namespace

extern "C" {

/// An AdamW optimizer of `count` parameters with moments in the named format; null if there is no
/// such format or no memory. The parameters stay the caller's and must outlive it.
void* memfit_new(char const* format, settings const* s, float* parameters, std::int64_t count,
                 int threads) {
  auto const body = [&] {
    std::unique_ptr<stepper> made;
    memfit::bench::for_each_format([&]<class Format>(std::string_view name) {
      if (name == format)
        made = std::make_unique<stepper>(make<Format>(*s, {parameters, count}, threads));
    });
    return static_cast<void*>(made.release());
  };
  return saying(body, static_cast<void*>(nullptr));
}

/// One step with as many gradients as there are parameters; returns when it is done, 0 if it was.
int memfit_step(void* optimizer, float const* gradients) {
  auto const& s = *static_cast<stepper*>(optimizer);
  auto const body = [&] {
    s.step({gradients, s.count});
    return 0;
  };
  return saying(body, 1);
}

/// Bytes of its moments and scales.
std::int64_t memfit_state_bytes(void const* optimizer) {
  return static_cast<stepper const*>(optimizer)->state_bytes;
}

void memfit_delete(void* optimizer) {
  delete static_cast<stepper*>(optimizer);
}

}  // extern "C"
