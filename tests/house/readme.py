#!/usr/bin/env python3
"""README is true: its code is compiled and its commands are run.

A ```cpp or ```cmake block must be, character for character, a region between `example-begin <name>` and
`example-end <name>` of a file under examples/. Each line of a ```bash block must be run by .ci/run or by a script that
it runs.
"""

import argparse
import re
import textwrap
from pathlib import Path

from house import ROOT, finish


def regions(folder):
    """The marked regions of all examples, without the indentation they share."""
    pattern = re.compile(r"^[ \t]*(?://|#) example-begin (\S+)\n(.*?)^[ \t]*(?://|#) example-end \1$", re.S | re.M)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (path.suffix in (".cpp", ".cu", ".hpp") or path.name == "CMakeLists.txt"):
            for match in pattern.finditer(path.read_text()):
                yield textwrap.dedent(match.group(2)).strip("\n")


def commands_run(root):
    """The lines of the scripts that CI runs."""
    for script in [root / ".ci/run", root / "tests/run.sh", root / "examples/quickstart.sh"]:
        if script.exists():
            yield from (line.strip() for line in script.read_text().splitlines())


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--root", type=Path, default=ROOT)
    root = options.parse_args().root
    readme = (root / "README.md").read_text()
    compiled, run_by_ci, faults, count = set(regions(root / "examples")), set(commands_run(root)), [], 0
    for language, block in re.findall(r"^```(\S*)\n(.*?)^```$", readme, re.S | re.M):
        count += 1
        if language in ("cpp", "cmake"):
            if block.strip("\n") not in compiled:
                faults.append(f"no example has this region:\n{block}")
        elif language == "bash":
            commands = [re.sub(r"\s+#.*", "", line).strip() for line in block.splitlines()]
            faults += [f"nothing runs `{c}`" for c in commands if c and not c.startswith("#") and c not in run_by_ci]
        elif language != "text":
            faults.append(f"a block of unknown kind '{language}': use cpp, cmake, bash, or text for output")
    finish(faults, f"{count} blocks of README are compiled or run")


if __name__ == "__main__":
    main()
