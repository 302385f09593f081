#!/usr/bin/env bash
# On a machine with a GPU: builds for it, runs the tests that want one, looks for memory errors and races, and measures the
# step. Takes at most 8 minutes: what runs out of its time, or fails, is reported and does not keep the rest from running.
#
#   bash bench/on_gpu.sh [FOLDER]   FOLDER, else $OUT, takes summary.md, step.json and a log of every part
#
# Downloads nothing. Needs nvcc, CMake 3.25, Python, GoogleTest and Google Benchmark; uses Ninja and compute-sanitizer where
# they are found.
#   MEMFIT_PACKAGES=FOLDER   .deb files that the machine lacks: libgtest-dev, libbenchmark-dev, libbenchmark1debian …
#   MEMFIT_BENCH_N=4096      a trial, as under an emulator: this size alone, without the table of rules and the examples
set -uo pipefail
out=${1:-${OUT:-}}
if [ -z "$out" ]; then
  echo "usage: bash bench/on_gpu.sh FOLDER" >&2
  exit 2
fi
mkdir -p "$out" && rm -f "$out"/{summary.md,step.json,*.log}
out=$(cd "$out" && pwd)
packages=${MEMFIT_PACKAGES:+$(cd "$MEMFIT_PACKAGES" && pwd)}
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
PATH=$PATH:/usr/local/cuda/bin
build=build/gpu
failed=

say() { printf '%s\n' "$*" | tee -a "$out/summary.md"; }

report() { say "| $1 | $2 | $3 |"; }

fail() {
  failed=yes
  report "$@"
}

# part <name> <seconds> <command>...: runs a command within its time and reports; the name's first word is that of the log.
part() {
  local name=$1 limit=$2 log=$out/${1%% *}.log began=$SECONDS status=0
  shift 2
  timeout --kill-after=5 "$limit" "$@" >>"$log" 2>&1 || status=$?
  case $status in
    0) report "$name" passed "$((SECONDS - began))" ;;
    124 | 137) fail "$name" "stopped after $limit s" "$((SECONDS - began))" ;;
    *) fail "$name" "failed with status $status" "$((SECONDS - began))" ;;
  esac
  [ "$status" -eq 0 ] || tail -n 25 "$log"
  return "$status"
}

unpack_packages() {
  local package
  mkdir -p "$build"
  for package in "$packages"/*.deb; do dpkg -x "$package" "$build/packages" || return; done
}

configure() {
  local options=(-DCMAKE_BUILD_TYPE=Release) all=ON capability
  if command -v ninja >/dev/null; then options+=(-G Ninja); fi
  if capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null); then
    options+=("-DCMAKE_CUDA_ARCHITECTURES=$(head -n 1 <<<"$capability" | tr -d '. ')")
  fi
  if [ -n "${MEMFIT_BENCH_N:-}" ]; then all=OFF; fi
  options+=("-DMEMFIT_TEST_TABLE=$all" "-DMEMFIT_BUILD_EXAMPLES=$all")
  if [ -d "$build/packages" ]; then options+=("-DCMAKE_PREFIX_PATH=$PWD/$build/packages/usr"); fi
  part 'build (configure)' 30 cmake -S . -B "$build" "${options[@]}" -DMEMFIT_BUILD_TESTS=ON ||
    part 'build (configure without tests)' 30 cmake -S . -B "$build" "${options[@]}" -DMEMFIT_BUILD_TESTS=OFF
}

# Takes what is left of the 8 minutes.
run_tests() {
  part tests "$((470 - SECONDS))" ctest --test-dir "$build" -L '^gpu$' -j "$(nproc)" --output-on-failure --no-tests=error
  if grep -q '(Skipped)' "$out/tests.log"; then fail tests "skipped: no device answered" 0; fi
}

# sanitize <tool>: a few tests of everything that the library launches.
sanitize() {
  if ! command -v compute-sanitizer >/dev/null; then
    report "$1" "left out: compute-sanitizer was not found" 0
    return
  fi
  part "$1" 30 compute-sanitizer --tool "$1" --error-exitcode 9 "$build/tests/cuda/cuda_contracts" \
    --gtest_filter='cuda_optimizer.*:cuda_step.*:cuda_gradients.*:cuda_quantize.small_and_large_blocks'
}

measure() {
  local shortest=0.02
  if [ -n "${MEMFIT_BENCH_N:-}" ]; then shortest=0.0001; fi
  part bench 60 "$build/bench/bench_step_cuda" --benchmark_repetitions=3 --benchmark_report_aggregates_only=true \
    "--benchmark_min_time=$shortest" "--benchmark_out=$out/step.json" --benchmark_out_format=json
}

say "# memfit on $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU of NVIDIA')"
say ''
say "$(git describe --always --dirty 2>/dev/null || echo 'no git'), $(nvcc --version | tail -n 1)"
say ''
report part result seconds
report --- --- ---
if [ -n "$packages" ]; then unpack_packages || fail packages "dpkg could not unpack them" 0; fi
configure
part 'build (bench)' 60 cmake --build "$build" --target bench_step_cuda -j "$(nproc)" && measure
part 'build (tests)' 190 cmake --build "$build" --target gpu_tests -j "$(nproc)"
sanitize memcheck
sanitize racecheck
run_tests
if table=$(python3 bench/table.py "$out/step.json"); then say $'\n'"$table"; else fail table "not made" 0; fi
[ -z "$failed" ]
