#!/usr/bin/env python3
"""One definition, one answer: units built by different compilers with different flags link and compute the same bits.

The same source is compiled once per variant. Alone in a program, each variant must print the same digest; linked all
into one program, no symbol may be defined twice and each must print that digest again.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from house import WARNINGS, finish, parser, run

HOST = ["-std=c++20", *WARNINGS]
VARIANTS = [
    ["g++", *HOST, "-O0"],
    ["g++", *HOST, "-O2"],
    ["g++", *HOST, "-O3", "-march=native", "-std=gnu++20", "-ffp-contract=fast"],
    ["clang++", *HOST, "-O2"],
    ["clang++", *HOST, "-O3", "-march=native", "-ffp-contract=fast"],
    ["nvcc", "-std=c++20", "-x", "cu"],
]


def main_text(names):
    declarations = "".join(f"std::uint64_t {name}();\n" for name in names)
    calls = "".join(f'  std::printf("%016llx\\n", static_cast<unsigned long long>({name}()));\n' for name in names)
    return f"#include <cstdint>\n#include <cstdio>\n{declarations}int main() {{\n{calls}}}\n"


def digests(names, folder, objects):
    """Links and runs a program of these units; returns its printed digests, or None and the linker's words."""
    source, program = folder / "main.cpp", folder / "program"
    source.write_text(main_text(names))
    built = run("g++", "-std=c++20", source, *objects, "-pthread", "-o", program)
    if built.returncode != 0:
        return None, built.stdout
    result = run(program)
    return (result.stdout.split(), "") if result.returncode == 0 else (None, result.stdout or "the program fails")


def main():
    options = parser(__doc__)
    options.add_argument("--unit", type=Path, default=Path(__file__).with_name("unit.cpp"))
    options.add_argument("--nvcc", default=shutil.which("nvcc"))
    options = options.parse_args()
    faults, built = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, (compiler, *flags) in enumerate(VARIANTS):
            compiler = options.nvcc if compiler == "nvcc" else shutil.which(compiler)
            if not compiler:
                continue
            unit, variant = f"unit_{number}", " ".join([Path(compiler).name, *flags])
            target = folder / f"{unit}.o"
            compiled = run(compiler, *flags, "-I", options.include, f"-DMEMFIT_UNIT={unit}", "-c", options.unit, "-o", target)
            if compiled.returncode != 0:
                faults.append(f"{variant} does not compile the unit:\n{compiled.stdout}")
                continue
            built[unit] = (variant, target)
        if faults:
            finish(faults, "")

        reference = None
        for unit, (variant, target) in built.items():
            digest, words = digests([unit], folder, [target])
            if digest is None:
                sys.exit(f"{variant}: {words}")
            print(f"{digest[0]}  {variant}")
            reference = reference or digest[0]
            if digest[0] != reference:
                faults.append(f"other bits from {variant}")
        together, words = digests(list(built), folder, [target for _, target in built.values()])
        if together is None:
            faults.append(f"linked into one program: {words}")
        elif set(together) != {reference}:
            faults.append(f"other bits in one program: {together}")
    finish(faults, f"{len(built)} variants give the same bits, alone and in one program")


if __name__ == "__main__":
    main()
