#!/usr/bin/env python3
"""Misuse does not compile, and the compiler's message says what is wrong in a line.

Each compile_fail/*.cpp compiles as it stands and must stop compiling with -DMEMFIT_FAIL. The first error must be a static
assertion or lie in the user's file, not deep inside the library, and each of the file's lines
`// expect: <regular expression>` must match an error or a note. With --cuda the files are compile_fail/*.cu, and the error
may lie in the kernel that meets the misuse: what a device may call is known there alone.
"""

import re
import sys
from pathlib import Path

from house import WARNINGS, finish, parser, run


def faults_of(command, source, anywhere):
    expected = re.findall(r"^// expect: (.+)$", source.read_text(), re.M)
    if not expected:
        return [f"{source.name}: no line '// expect: ...'"]
    right = run(*command, source)
    if right.returncode != 0:
        return [f"{source.name}: the right use does not compile:\n{right.stdout}"]
    wrong = run(*command, "-DMEMFIT_FAIL", source)
    if wrong.returncode == 0:
        return [f"{source.name}: the misuse compiles"]
    errors = [line for line in wrong.stdout.splitlines() if " error: " in line]
    said = [line for line in wrong.stdout.splitlines() if " error: " in line or " note: " in line]
    if not anywhere and not errors[0].startswith(str(source)) and not re.search(r"static.assert", errors[0]):
        return [f"{source.name}: the first error is inside the library:\n{errors[0]}"]
    return [f"{source.name}: no error or note says /{pattern}/:\n" + "\n".join(said)
            for pattern in expected if not any(re.search(pattern, line) for line in said)]


def main():
    options = parser(__doc__)
    options.add_argument("--compiler", default="g++")
    options.add_argument("--cuda", action="store_true", help="the compiler is nvcc")
    options.add_argument("--cases", type=Path, default=Path(__file__).with_name("compile_fail"))
    options = options.parse_args()
    command = [options.compiler, "-std=c++20", "-I", options.include]
    command += ["-cubin", "-o", "/dev/null"] if options.cuda else ["-fsyntax-only", *WARNINGS]
    cases = sorted(options.cases.glob("*.cu" if options.cuda else "*.cpp"))
    if not cases:
        sys.exit(f"no cases in {options.cases}")
    faults = [fault for case in cases for fault in faults_of(command, case, options.cuda)]
    finish(faults, f"{len(cases)} misuses are refused by {options.compiler} with a readable message")


if __name__ == "__main__":
    main()
