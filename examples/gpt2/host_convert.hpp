// Between values of 16 bits and floats, many at a time, as fast as the instructions of the build
// allow. Used by the kernels and products of the GPT-2 example on the host.
#pragma once

#include "element.hpp"
#include "tensor.hpp"

namespace gpt2 {

void widen(index count, const bf16* in, float* out);
void widen(index count, const fp16* in, float* out);

// To nearest, ties to even.
void narrow_to(index count, const float* in, bf16* out);
void narrow_to(index count, const float* in, fp16* out);

}  // namespace gpt2
