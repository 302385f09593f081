// Runs the tests labelled gpu where a device answers; elsewhere says why not and asks to be
// skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int devices = 0;
  auto const error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    std::printf("skipped: no CUDA device answers: %s (%s)\n", cudaGetErrorName(error),
                cudaGetErrorString(error));
    return 77;
  }
  return RUN_ALL_TESTS();
}
