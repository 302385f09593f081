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


def structs_of(texts, room, member):
    """Names of the structs of one room whose first lines declare such a member."""
    found = set()
    for header, text in texts.items():
        if header.startswith(f"memfit/{room}/"):
            for match in re.finditer(r"\bstruct\s+(\w+)[^;{]*\{([^{}]*)", text):
                if re.search(member, match.group(2)):
                    found.add(match.group(1))
    return found


def rules_of(texts):
    """The rules that the headers declare: a rule has a learning rate."""
    return structs_of(texts, "rule", r"\bdouble\s+lr\b")


def formats_of(texts):
    """The formats that the headers declare: a format of its own has a block size."""
    return structs_of(texts, "codec", r"\bint\s+block\s*=\s*(default_block|\d+)\s*;") - {"format_traits"}


def codecs_of(texts):
    """The codecs that the headers declare: a codec names the type of its codes."""
    return structs_of(texts, "codec", r"\busing\s+code\b")


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
