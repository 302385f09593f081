#!/usr/bin/env bash
# Builds and runs every test of what the library computes that needs neither a GPU nor a large machine: bash tests/run.sh
# Installs what is missing first. The last lines are ctest's own; the exit status is non-zero when anything fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=cmake/packages.sh
source cmake/packages.sh
need_packages g++=g++ cmake=cmake ninja=ninja-build python3=python3 \
  libgtest-dev libbenchmark-dev libdnnl-dev libcli11-dev nlohmann-json3-dev
need_cmake

if command -v ninja >/dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
# .ci/run goes on with the checks of the house, with benchmarks and with what runs on CUDA.
cmake --preset release -DMEMFIT_CUDA=OFF
cmake --build --preset release --target plain_tests -j "$(nproc)"
ctest --preset plain -j "$(nproc)"
