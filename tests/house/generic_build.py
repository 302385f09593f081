#!/usr/bin/env python3
"""A plain -O2 build for any x86-64 steps at least 0.9 times as fast as one for this machine.

Both programs run in turn on data in the cache, and the best of their tries counts. A neighbour on a
shared machine can slow all of one program's tries, so a low ratio is measured again for a while.
"""

import platform
import tempfile
from pathlib import Path

from house import ROOT, finish, parser, run

LEAST = 0.9
FEWEST, MOST = 3, 40  # tries of both


def build(options, folder, name, *flags):
    program = Path(folder) / name
    source = ROOT / "tests/house/step_speed.cpp"
    result = run(options.compiler, "-std=c++20", "-O2", "-pthread", *flags, "-I", options.include, source, "-o", program)
    if result.returncode != 0:
        finish([result.stdout], "")
    return program


def main():
    options = parser(__doc__)
    options.add_argument("--compiler", default="g++")
    options = options.parse_args()
    if platform.machine() != "x86_64":
        finish([], "skipped: this machine is not an x86-64")
    with tempfile.TemporaryDirectory() as folder:
        programs = [build(options, folder, "generic"), build(options, folder, "native", "-march=native")]
        best = [0.0, 0.0]
        for number in range(1, MOST + 1):
            best = [max(b, float(run(program).stdout)) for b, program in zip(best, programs)]
            generic, native = best
            if number >= FEWEST and generic >= LEAST * native:
                break
    ratio = generic / native
    figure = f"generic {generic:.3f}, native {native:.3f} parameters/ns, ratio {ratio:.3f}"
    finish([figure] if ratio < LEAST else [], figure)


if __name__ == "__main__":
    main()
