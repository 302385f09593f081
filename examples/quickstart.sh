#!/usr/bin/env bash
# From nothing to a trained GPT-2 in a few minutes: bash examples/quickstart.sh
# Installs what is missing, builds, trains the same small model with four state formats, shows text that it writes, and
# compares losses and bytes in a table and a picture. Everything it makes lies in build/quickstart.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=build/quickstart

# shellcheck source=cmake/packages.sh
source cmake/packages.sh
need_packages g++=g++ cmake=cmake ninja=ninja-build python3=python3 gnuplot=gnuplot-nox \
  libdnnl-dev libcli11-dev nlohmann-json3-dev
need_cmake

quietly() {
  if ! "$@" >"$out/build.log" 2>&1; then
    cat "$out/build.log" >&2
    echo "memfit: failed: $*" >&2
    exit 1
  fi
}

mkdir -p "$out"
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
echo "memfit: building gpt2_train"
quietly cmake -S . -B "$out/tree" -DCMAKE_BUILD_TYPE=Release \
  -DMEMFIT_BUILD_TESTS=OFF -DMEMFIT_BUILD_BENCH=OFF -DMEMFIT_CUDA=OFF
quietly cmake --build "$out/tree" --target gpt2_train memfit_fit -j "$(nproc)"

# The same seed and batches each time: only the format of the moments differs. linear8 is the control.
for state in fp32 dynamic8 float8 linear8; do
  printf '\nmemfit: training with moments in %s\n' "$state"
  sample=0
  if [ "$state" = float8 ]; then sample=400; fi
  "$out/tree/examples/gpt2/gpt2_train" --model tiny --batch 32 --seq 32 --seed 2 --steps 800 \
    --lr 1e-3 --warmup 50 --val-every 100 --state "$state" --log "$out/$state.jsonl" --sample "$sample" |
    awk '!/^step / || /validation/ { print; fflush() }'
done

python3 examples/quickstart/report.py "$out" fp32 dynamic8 float8 linear8

printf '\nmemfit: would GPT-2 XL train on a card of 12 GB?\n'
build/quickstart/tree/examples/fit/memfit_fit --model gpt2-xl --device rtx-3060-12g --batch 64 --seq 1024
