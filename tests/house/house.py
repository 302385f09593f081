"""What the tests of the house share: where the headers are, how to compile, how to report.

Each test is a program that exits with 0 or prints what is wrong and exits with 1. Each takes --include DIR, the folder
that holds memfit/, so that checks_can_fail.py can point it at small wrong trees.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def parser(description):
    result = argparse.ArgumentParser(description=description.splitlines()[0])
    result.add_argument("--include", type=Path, default=ROOT / "include", help="folder that holds memfit/")
    return result


def headers(include, *suffixes):
    """Paths of all headers relative to the include folder, as an include line names them."""
    found = sorted(p.relative_to(include).as_posix() for p in (include / "memfit").rglob("*") if p.suffix in suffixes)
    if not found:
        sys.exit(f"no {' or '.join(suffixes)} under {include}/memfit")
    return found


def without_comments(text):
    """C++ text with comments and string literals blanked, line numbers kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def run(*command, **options):
    """Runs a command; its output, stdout and stderr together, is in .stdout."""
    command = [str(word) for word in command]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


def compile_text(command, text, suffix):
    """Compiles a text given as a string; returns the finished process."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"unit{suffix}"
        source.write_text(text)
        return run(*command, "-o", Path(folder) / "unit.o", source)


def finish(faults, passed):
    """Ends the program: prints the faults, or one line that says what holds."""
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(f"{len(faults)} fault(s)")
    print(passed)
    sys.exit(0)
