#!/usr/bin/env python3
"""One definition, one answer: units built by different compilers with different flags link and compute the same bits.

The same source is compiled once per variant. Alone in a program, each variant must print the same digest; linked all
into one program, no symbol may be defined twice and each must print that digest again.
"""

import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from house import WARNINGS, finish, parser, run

HOST = ["-std=c++20", *WARNINGS]
VARIANTS = [
    ["g++", *HOST, "-O0"],
    ["g++", *HOST, "-O2"],
    ["g++", *HOST, "-O3", "-march=native", "-std=gnu++20", "-ffp-contract=fast"],
    ["clang++", *HOST, "-O2", "-ffp-contract=fast"],
    ["nvcc", "-std=c++20", "-x", "cu"],
]


def main_text(names):
    declarations = "".join(f"std::uint64_t {name}();\n" for name in names)
    calls = "".join(f'  std::printf("%016llx\\n", static_cast<unsigned long long>({name}()));\n' for name in names)
    return f"#include <cstdint>\n#include <cstdio>\n{declarations}int main() {{\n{calls}}}\n"


def digests(linker, names, folder, objects):
    """Links and runs a program of these units; returns its printed digests, or None and the linker's words."""
    source, program = folder / "main.cpp", folder / "program"
    source.write_text(main_text(names))
    built = run(linker, "-std=c++20", source, *objects, "-lpthread", "-o", program)
    if built.returncode != 0:
        return None, built.stdout
    result = run(program)
    return (result.stdout.split(), "") if result.returncode == 0 else (None, result.stdout or "the program fails")


def compile_variants(options, folder):
    """Compiles the unit once per variant that this machine has; returns {function: (variant, object)} and faults."""

    def compile_one(numbered):
        number, (compiler, *flags) = numbered
        compiler = options.nvcc if compiler == "nvcc" else shutil.which(compiler)
        if not compiler:
            return None
        name, variant = f"unit_{number}", " ".join([Path(compiler).name, *flags])
        target = folder / f"{name}.o"
        return name, variant, target, run(compiler, *flags, "-I", options.include, f"-DMEMFIT_UNIT={name}",
                                          "-c", options.unit, "-o", target)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = [result for result in pool.map(compile_one, enumerate(VARIANTS)) if result]
    faults = [f"{variant} does not compile the unit:\n{result.stdout}"
              for _, variant, _, result in done if result.returncode != 0]
    return {name: (variant, target) for name, variant, target, _ in done}, faults


def main():
    options = parser(__doc__)
    options.add_argument("--unit", type=Path, default=Path(__file__).with_name("unit.cpp"))
    options.add_argument("--nvcc", default=shutil.which("nvcc"))
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built, faults = compile_variants(options, folder)
        if faults:
            finish(faults, "")
        linker, reference = options.nvcc or "g++", None
        for unit, (variant, target) in built.items():
            digest, words = digests(linker, [unit], folder, [target])
            if digest is None:
                sys.exit(f"{variant}: {words}")
            print(f"{digest[0]}  {variant}")
            reference = reference or digest[0]
            if digest[0] != reference:
                faults.append(f"other bits from {variant}")
        together, words = digests(linker, list(built), folder, [target for _, target in built.values()])
        if together is None:
            faults.append(f"linked into one program: {words}")
        elif set(together) != {reference}:
            faults.append(f"other bits in one program: {together}")
    finish(faults, f"{len(built)} variants give the same bits, alone and in one program")


if __name__ == "__main__":
    main()
