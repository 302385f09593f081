#include "made.hpp"

#include <memfit/memfit.cuh>

optimizer make_optimizer(memfit::cuda exec, tensors const& parameters) {
  return {exec, {.lr = 1e-2}, parameters};
}
