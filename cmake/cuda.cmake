# Whether memfit's own tests, examples and benchmarks are built for CUDA devices, too, and for which.
find_package(CUDAToolkit QUIET)
option(MEMFIT_CUDA "Build what runs on CUDA devices" ${CUDAToolkit_FOUND})
if(NOT MEMFIT_CUDA)
  return()
endif()

if(NOT CUDAToolkit_FOUND)
  message(FATAL_ERROR "MEMFIT_CUDA is ON, but no CUDA toolkit was found: put nvcc on the PATH, or set MEMFIT_CUDA to OFF")
endif()
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
set(memfit_cuda_architectures_given ${CMAKE_CUDA_ARCHITECTURES})
if(NOT memfit_cuda_architectures_given)
  set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80 90)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)

# The device that is here, if one is: nvcc says so while the language is enabled.
set(memfit_native ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
if(NOT memfit_native MATCHES "^[0-9]")
  set(memfit_native "")
endif()
if(NOT memfit_cuda_architectures_given AND memfit_native)
  list(APPEND CMAKE_CUDA_ARCHITECTURES ${memfit_native})
  list(REMOVE_DUPLICATES CMAKE_CUDA_ARCHITECTURES)
endif()

# Tests and benchmarks compile many kernels for what was asked for, else for one device: the one that is here, or any that
# understands this PTX.
if(memfit_cuda_architectures_given)
  set(memfit_test_architectures ${memfit_cuda_architectures_given})
elseif(memfit_native)
  set(memfit_test_architectures ${memfit_native})
else()
  set(memfit_test_architectures 80-virtual)
endif()
