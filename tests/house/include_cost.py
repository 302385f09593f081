#!/usr/bin/env python3
"""The price of an include: preprocessed lines per header against the budget in include_cost.txt.

A header may cost 5 % more than its budget. Another compiler brings another standard library, so the table is judged only
with the one that the budget was measured with. --update measures it anew: do so in the commit that needs it.
"""

import sys
from pathlib import Path

from house import finish, headers, parser, run

TOLERANCE = 5  # per cent


def compiler_version(compiler):
    return f"{Path(compiler).name} {run(compiler, '-dumpversion').stdout.strip()}"


def measure(compiler, include, header):
    text = run(compiler, "-std=c++20", "-E", "-P", "-I", include, "-x", "c++", include / header)
    if text.returncode != 0:
        sys.exit(text.stdout)
    return len(text.stdout.splitlines())


def read_budget(path):
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    (_, *version), rows = lines[0], lines[1:]
    return " ".join(version), {header: int(count) for count, header in rows}


def write_budget(path, version, cost):
    rows = "".join(f"{count:7d} {header}\n" for header, count in sorted(cost.items()))
    path.write_text(f"# Preprocessed lines per header; written by include_cost.py --update.\nmeasured-with {version}\n{rows}")


def main():
    options = parser(__doc__)
    options.add_argument("--compiler", default="g++")
    options.add_argument("--budget", type=Path, default=Path(__file__).with_name("include_cost.txt"))
    options.add_argument("--update", action="store_true")
    options = options.parse_args()
    cost = {h: measure(options.compiler, options.include, h) for h in headers(options.include, ".hpp")}
    version = compiler_version(options.compiler)
    if options.update:
        write_budget(options.budget, version, cost)

    measured_with, budget = read_budget(options.budget)
    print(f"{'lines':>7} {'budget':>7}  header ({version}; budget of {measured_with})")
    faults = [f"{header}: the budget names it, the tree does not" for header in sorted(budget.keys() - cost.keys())]
    for header, count in cost.items():
        print(f"{count:7d} {budget.get(header, 0):7d}  {header}")
        if header not in budget:
            faults.append(f"{header}: has no budget yet: run include_cost.py --update")
        elif version == measured_with and count * 100 > budget[header] * (100 + TOLERANCE):
            faults.append(f"{header}: {count} lines, budget {budget[header]}")
    finish(faults, "every header keeps to its budget" if version == measured_with else "not judged: another compiler")


if __name__ == "__main__":
    main()
