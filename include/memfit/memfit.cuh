// Everything for programs compiled by nvcc that train on CUDA devices, in one include.
// Used beside or without memfit.hpp, which has the host executor.
#pragma once

#if !defined(__CUDACC__)
#error "memfit.cuh is for nvcc; other compilers take memfit/memfit.hpp and memfit/exec/cuda.hpp"
#endif

#include "memfit/accumulator.hpp"
#include "memfit/cast.hpp"
#include "memfit/clip.hpp"
#include "memfit/exec/cuda.cuh"
#include "memfit/gradients.hpp"
#include "memfit/optimizer.hpp"
#include "memfit/quantize.hpp"
#include "memfit/release.hpp"
#include "memfit/scaler.hpp"
#include "memfit/step.hpp"
