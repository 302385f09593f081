#!/usr/bin/env python3
"""Every header compiles alone, twice in a row, and after macros that other people's headers define.

A host compiler takes each .hpp alone with the warnings that users switch on, a second one all in one unit (--together):
what a header forgets to include, the first has found. A CUDA compiler is slow, so it takes all .hpp in one unit, and each
.cuh alone, with the bare flags that users have: -std=c++20 and nothing else.
"""

import re
from pathlib import Path

from house import WARNINGS, compile_text, finish, headers, parser


def alone(header):
    return f'#include "{header}"\n#include "{header}"\n'


def among_hostile_macros(include, names):
    """All headers at once, after the standard headers that they use and then the macros."""
    lines = {line for name in names for line in re.findall(r"^#include <[^>]+>", (include / name).read_text(), re.M)}
    macros = Path(__file__).with_name("hostile_macros.hpp").read_text()
    return "\n".join(sorted(lines)) + "\n" + macros + "".join(f'#include "{name}"\n' for name in names)


def units(options):
    """(name, source text) of everything to compile."""
    hpp = headers(options.include, ".hpp")
    if options.cuda:
        cuh = sorted(h.relative_to(options.include).as_posix() for h in options.include.rglob("*.cuh"))
        yield "all .hpp", "".join(map(alone, hpp))
        yield "all headers after hostile macros", among_hostile_macros(options.include, hpp + cuh)
        yield from ((header, alone(header)) for header in cuh)
    elif options.together:
        yield "all headers", "".join(map(alone, hpp))
        yield "all headers after hostile macros", among_hostile_macros(options.include, hpp)
    else:
        yield from ((header, alone(header)) for header in hpp)
        yield "all headers after hostile macros", among_hostile_macros(options.include, hpp)


def main():
    options = parser(__doc__)
    options.add_argument("--compiler", default="g++")
    options.add_argument("--together", action="store_true", help="all headers in one unit")
    options.add_argument("--cuda", action="store_true", help="the compiler is nvcc")
    options = options.parse_args()
    command = [options.compiler, "-std=c++20", "-I", options.include]
    command += ["-x", "cu", "-c"] if options.cuda else ["-fsyntax-only", *WARNINGS]
    faults, count = [], 0
    for name, text in units(options):
        count += 1
        result = compile_text(command, text, ".cu" if options.cuda else ".cpp")
        if result.returncode != 0:
            faults.append(f"{name}:\n{result.stdout}")
    finish(faults, f"{count} units compile with {options.compiler}")


if __name__ == "__main__":
    main()
