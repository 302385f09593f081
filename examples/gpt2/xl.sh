#!/usr/bin/env bash
# GPT-2 XL within a hard limit of 12 GiB of address space, and of 8 GiB; refused without --fit.
# Used by the test gpt2_xl: xl.sh GPT2_TRAIN [GIBIBYTES...]. Steps take minutes on two cores.
set -euo pipefail

program=$1
shift
if [ $# -eq 0 ]; then set -- 12 8; fi
run=(--model gpt2-xl --batch 4 --micro-batch 1 --seq 64 --steps 2)

within() { # GIBIBYTES WORDS...
  prlimit --as=$(($1 << 30)) "$program" "${run[@]}" "${@:2}"
}

for gib in "$@"; do
  echo "== $gib GiB, without --fit"
  if said=$(within "$gib" 2>&1 >/dev/null); then
    echo "it was not refused" >&2
    exit 1
  fi
  echo "$said"
  [[ $said == *"--fit BYTES"* && $said == *moments* ]]
  echo "== $gib GiB, with --fit ${gib}GiB"
  within "$gib" --fit "${gib}GiB"
done
