#!/usr/bin/env python3
"""cmake/packages.sh installs exactly what is missing, or stops with a clear message, on machines of every kind.

A machine is a folder of small commands that stand for the real ones and write down how they were called.
"""

import os
import shutil
import tempfile
import unittest
from pathlib import Path

from house import ROOT, run

NEEDED = ["bash", "dirname", "grep", "env", "awk", "sort", "head", "mkdir", "chmod", "tail", "cat", "ln"]
DPKG = 'case " $INSTALLED " in *" ${!#} "*) echo installed ;; *) exit 1 ;; esac'

VENV = """mkdir -p "$3/bin"
printf '#!%s\\necho cmake version 3.31.0\\n' "$BASH" >"$3/bin/cmake"
{ printf '#!%s\\n' "$BASH"; cat <<'PIP'; } >"$3/bin/pip"
echo "pip $*" >>"$LOG"
tool=${0%/*}/../lib/python3/site-packages/nvidia/cu13/bin
mkdir -p "$tool"
printf '#!%s\\necho disassembles\\n' "$BASH" >"$tool/nvdisasm"
chmod +x "$tool/nvdisasm"
PIP
chmod +x "$3/bin/cmake" "$3/bin/pip"
"""


class Packages(unittest.TestCase):
    def machine(self, script, installed="", uid=0, commands=(), without=(), answers=None):
        """Runs a script after sourcing packages.sh; returns the process and the log of what was called."""
        with tempfile.TemporaryDirectory() as name:
            folder, log = Path(name) / "bin", Path(name) / "log"
            (Path(name) / "tree/cmake").mkdir(parents=True)
            shutil.copy(ROOT / "cmake/packages.sh", Path(name) / "tree/cmake")
            folder.mkdir()
            log.touch()
            for command in NEEDED:
                (folder / command).symlink_to(shutil.which(command))
            bodies = {"dpkg-query": DPKG, "apt-get": 'echo "apt-get $*" >>"$LOG"', "id": f"echo {uid}"}
            bodies.update({command: 'echo "$0 $*" >>"$LOG"' for command in commands})
            bodies.update(answers or {})
            for command, body in bodies.items():
                if command not in without:
                    (folder / command).write_text(f"#!{shutil.which('bash')}\n{body}\n")
                    (folder / command).chmod(0o755)
            result = run("bash", "-euo", "pipefail", "-c", f"source cmake/packages.sh\n{script}", cwd=Path(name) / "tree",
                         env={"PATH": str(folder), "LOG": str(log), "INSTALLED": installed})
            return result, log.read_text()

    def test_nothing_missing_changes_nothing(self):
        result, log = self.machine("need_packages tool=tool-dev libx", installed="libx", commands=["tool"])
        self.assertEqual((result.returncode, result.stdout, log), (0, "", ""))

    def test_root_installs_what_is_missing(self):
        result, log = self.machine("need_packages tool=tool-dev libx liby", installed="libx")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(log, r"apt-get update.*\napt-get install .* tool-dev liby\n$")

    def test_user_goes_through_sudo(self):
        result, log = self.machine("need_packages libx", uid=1000, answers={"sudo": 'echo "sudo $1" >>"$LOG"; exec "$@"'})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(log, r"sudo apt-get\napt-get update.*\nsudo env\napt-get install .* libx\n$")

    def test_user_without_sudo_is_told(self):
        result, log = self.machine("need_packages libx", uid=1000)
        self.assertEqual((result.returncode, log), (3, ""))
        self.assertIn("libx", result.stdout)
        self.assertIn("root or sudo", result.stdout)

    def test_other_systems_are_told(self):
        result, _ = self.machine("need_packages libx", without=["apt-get", "dpkg-query"])
        self.assertEqual(result.returncode, 3)
        self.assertIn("Debian and Ubuntu only", result.stdout)
        result, _ = self.machine("MEMFIT_SKIP_PACKAGES=1 need_packages libx", without=["apt-get"])
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_failed_installation_stops(self):
        result, _ = self.machine("need_packages libx\necho going on", answers={"apt-get": "exit 100"})
        self.assertEqual(result.returncode, 3)
        self.assertIn("could not install libx", result.stdout)
        self.assertNotIn("going on", result.stdout)

    def test_cmake(self):
        def answer(version):
            return {"cmake": f"echo cmake version {version}"}

        for version in ["3.25.0", "3.28.3", "4.1.0"]:
            result, _ = self.machine("need_cmake; cmake --version", answers=answer(version))
            self.assertEqual((result.returncode, result.stdout), (0, f"cmake version {version}\n"))
        result, _ = self.machine("need_cmake; cmake --version", installed="python3-venv",
                                 answers={**answer("3.22.1"), "python3": VENV})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"older than 3.25(.|\n)*cmake version 3.31.0\n$")

    def test_nvdisasm(self):
        show = "need_nvdisasm; build/tools/bin/nvdisasm"
        result, log = self.machine("need_nvdisasm")
        self.assertEqual((result.returncode, result.stdout, log), (0, "", ""))
        result, log = self.machine("need_nvdisasm", commands=["nvcc", "nvdisasm"])
        self.assertEqual((result.returncode, result.stdout, log), (0, "", ""))
        result, log = self.machine(f"{show}; {show}", installed="python3-venv", commands=["nvcc"], answers={"python3": VENV})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"no nvdisasm(.|\n)*disassembles\ndisassembles\n$")
        self.assertEqual(log, "pip install --quiet nvidia-cuda-nvdisasm\n")
        result, _ = self.machine(show, installed="python3-venv", commands=["nvcc"], answers={"python3": "exit 1"})
        self.assertEqual(result.returncode, 3)
        self.assertIn("could not install nvidia-cuda-nvdisasm", result.stdout)


if __name__ == "__main__":
    unittest.main()
