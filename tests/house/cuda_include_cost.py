#!/usr/bin/env python3
"""Including memfit.cuh costs a unit compiled by nvcc little: at most 2 s of processor time more than an empty one.

On machines that take more than a second for an empty unit, at most twice that time.
"""

import resource
import tempfile
from pathlib import Path

from house import finish, parser, run

LIMIT = 2.0
LEAST, MOST = 3, 9  # pairs of compilations: more than the least only while the cost seems too high


def seconds(nvcc, include, text):
    """The processor time of a compilation with bare flags."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "unit.cu"
        source.write_text(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run(nvcc, "-std=c++20", "-I", include, "-c", source, "-o", source.with_suffix(".o"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        finish([done.stdout], "")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    options = parser(__doc__)
    options.add_argument("--nvcc", required=True)
    options = options.parse_args()
    empty = with_library = float("inf")
    for pair in range(MOST):
        empty = min(empty, seconds(options.nvcc, options.include, ""))
        with_library = min(with_library, seconds(options.nvcc, options.include, '#include "memfit/memfit.cuh"\n'))
        cost, limit = with_library - empty, LIMIT * max(1.0, empty)
        if pair + 1 >= LEAST and cost <= limit:
            break
    words = f"memfit.cuh costs {cost:.2f} s on top of the {empty:.2f} s of an empty unit (limit {limit:.2f} s)"
    finish([words] if cost > limit else [], words)


if __name__ == "__main__":
    main()
