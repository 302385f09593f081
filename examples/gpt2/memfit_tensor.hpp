// Shows memfit the trainer's tensor: one specialisation, as any user writes for a type of their
// own. Used by the optimizers of the GPT-2 example.
#pragma once

#include <memfit/core/tensor.hpp>

#include "tensor.hpp"

template <class T>
struct memfit::tensor_traits<gpt2::tensor<T>> {
  static tensor_ref<T> ref(gpt2::tensor<T>& t) { return {t.data(), t.size(), t.name()}; }
  static tensor_ref<const T> ref(const gpt2::tensor<T>& t) {
    return {t.data(), t.size(), t.name()};
  }
};
