// Compiler marks shared by every header of memfit.
// Used by all rooms; users write MEMFIT_HD on the functions of their own rules and codecs.
#pragma once

#define MEMFIT_VERSION_MAJOR 0
#define MEMFIT_VERSION_MINOR 1
#define MEMFIT_VERSION_PATCH 0

#if __cplusplus < 202002L
#error "memfit needs C++20: compile with -std=c++20, nvcc too"
#endif

/// Marks a function that runs on the host and, under a CUDA compiler, on the device too.
#if defined(__CUDACC__)
#define MEMFIT_HD __host__ __device__
#else
#define MEMFIT_HD
#endif
