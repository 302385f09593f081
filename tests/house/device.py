#!/usr/bin/env python3
"""Every rule and every format compiles for the device with bare flags, and no one was forgotten.

The names are those of device.cu's lists and of the table in tests/cuda, which compares the device with the host; a rule
or format that the headers declare and one of these lacks is a fault. With --nvcc the first is compiled, too: -std=c++20
and nothing else, as a user does who knows no flag.
"""

from pathlib import Path

from house import ROOT, compile_text, finish, formats_of, headers, parser, rules_of, without_comments


def main():
    options = parser(__doc__)
    options.add_argument("--nvcc")
    options.add_argument("--source", type=Path, default=Path(__file__).with_name("device.cu"))
    options.add_argument("--table", type=Path, nargs="*", default=sorted(ROOT.glob("tests/cuda/table*")))
    options = options.parse_args()
    code = {h: without_comments((options.include / h).read_text()) for h in headers(options.include, ".hpp")}
    source = options.source.read_text()
    texts = {options.source.name: source, "the table": "".join(path.read_text() for path in options.table)}
    declared = rules_of(code) | formats_of(code)
    faults = [f"{name} lacks {thing}" for name, text in texts.items() for thing in sorted(declared)
              if f"memfit::{thing}" not in text]
    if options.nvcc:
        compiled = compile_text([options.nvcc, "-std=c++20", "-I", options.include, "-c"], source, ".cu")
        if compiled.returncode != 0 or "warning" in compiled.stdout:
            faults.append(compiled.stdout)
    finish(faults, f"{', '.join(sorted(declared))}: all there")


if __name__ == "__main__":
    main()
