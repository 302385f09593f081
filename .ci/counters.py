#!/usr/bin/env python3
"""Holds the step kernels to what the emulator counts of them: counters.py FILE, the emulator's lines of JSON.

FILE is of AdamW with fp32 parameters and gradients on 2^20 parameters (tests cuda_million.*): bytes, coalescing, conflicts,
local memory and instructions per parameter.
"""

import json
import sys

PARAMETERS = 1 << 20
INSTRUCTIONS = {"float8": 75, "dynamic8": 115}


def faults_of(kernel, limit):
    load, store = kernel["global_load"], kernel["global_store"]
    found = {
        "bytes of distinct memory": (load["min_dram_bytes"] + store["min_dram_bytes"]) / PARAMETERS,
        "coalescing of loads": load["efficiency"],
        "coalescing of stores": store["efficiency"],
        "shared-memory conflicts": kernel["shared_load"]["extra_wavefronts"] + kernel["shared_store"]["extra_wavefronts"],
        "bytes of local memory": kernel["local_load_bytes"] + kernel["local_store_bytes"],
        "instructions": kernel["thread_instr"] / PARAMETERS,
    }
    print("  " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()))
    bounds = {"bytes of distinct memory": 16.2, "shared-memory conflicts": 0, "bytes of local memory": 0,
              "instructions": limit}
    yield from (f"{name}: {found[name]:.4g}, at most {most}" for name, most in bounds.items() if found[name] > most)
    yield from (f"{name}: {found[name]:.4g}, at least 0.98" for name in found if "coalescing" in name and found[name] < 0.98)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        launches = [json.loads(line) for line in file]
    faults = []
    for state, limit in INSTRUCTIONS.items():
        kernels = [k for k in launches if "step_parts" in k.get("kernel", "") and f"memfit::{state}," in k["kernel"]]
        if not kernels:
            faults.append(f"no step with {state} was counted")
            continue
        print(f"adamw, {state}, per parameter:")
        faults += [f"{state}: {fault}" for fault in faults_of(kernels[-1], limit)]
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
