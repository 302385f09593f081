#!/usr/bin/env python3
"""A user's project builds and runs with memfit installed (find_package) and with memfit in its tree (add_subdirectory).

The project is examples/consumer/trainer.cpp with the CMakeLists.txt of one of the two ways, copied out of the tree; or
examples/consumer/cuda, which has memfit in its tree and a file for nvcc.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from house import ROOT, run


def step(*command):
    result = run(*command)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}")
    return result.stdout


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("way", choices=["find_package", "add_subdirectory", "cuda"])
    options.add_argument("--build", type=Path, required=True, help="memfit's build folder, to install from")
    options.add_argument("--cmake", default="cmake")
    options.add_argument("--nvcc", help="for the way cuda")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project, build, prefix = folder / "project", folder / "build", folder / "prefix"
        consumer = ROOT / "examples/consumer"
        shutil.copytree(consumer / options.way, project)
        configure = [options.cmake, "-S", project, "-B", build]
        if options.way == "cuda":
            configure += [f"-DCMAKE_CUDA_COMPILER={options.nvcc}", "-DCMAKE_CUDA_ARCHITECTURES=80-virtual"]
        else:
            shutil.copy(consumer / "trainer.cpp", project)
        if options.way == "find_package":
            step(options.cmake, "--install", options.build, "--prefix", prefix)
            configure.append(f"-DCMAKE_PREFIX_PATH={prefix}")
        else:
            (project / "third_party").mkdir()
            (project / "third_party/memfit").symlink_to(ROOT, target_is_directory=True)
        step(*configure)
        step(options.cmake, "--build", build)
        print(step(build / "trainer"), end="")
        unwanted = [p.name for p in build.rglob("*") if p.name in ("gpt2_train", "bench_step", "own_rule")]
        if unwanted:
            sys.exit(f"the user's build also built memfit's own {unwanted}")


if __name__ == "__main__":
    main()
