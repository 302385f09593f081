// Shows memfit the trainer's tensor: one specialisation, as any user writes for a type of their
// own. Used by the optimizers of the GPT-2 example.
#pragma once

#include <memfit/core/tensor.hpp>

#include "tensor.hpp"

template <>
struct memfit::tensor_traits<gpt2::tensor<float>> {
  static tensor_ref<float> ref(gpt2::tensor<float>& t) { return {t.data(), t.size(), t.name()}; }
  static tensor_ref<const float> ref(const gpt2::tensor<float>& t) {
    return {t.data(), t.size(), t.name()};
  }
};
