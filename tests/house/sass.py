#!/usr/bin/env python3
"""The CUDA step stays in registers and moves its columns by wide words: what ptxas and the machine code say of sass.cu.

No kernel has a stack frame or spills a register. Where nvdisasm is found, on the PATH, beside nvcc or in build/tools, the
machine code is judged, too: it touches no local memory, reads and writes every fp32 column 128 bits at a time, and reaches
columns as global memory only. Where a tensor's pointers and counts lie is not known in advance: generic loads of one or
two words are theirs, other generic accesses would be a column's.
"""

import re
import shutil
import tempfile
from pathlib import Path

from house import ROOT, finish, parser, run

ARCHITECTURES = ["sm_80", "sm_90"]
KERNEL = r"\bstep_parts<(.*)>\("
SLOTS = {"sgd": 0, "momentum": 1, "adamw": 2}
RUNS = 2  # wide words of a column in a thread; sass.cu asserts it
OF_ITEM = re.compile(r"LD\.E(\.64)?(?!\.)")


def nvdisasm(nvcc):
    """Where the disassembler is, or None."""
    places = [None, Path(nvcc).parent, ROOT / "build/tools/bin"]
    return next((found for place in places if (found := shutil.which("nvdisasm", path=place))), None)


def by_kernel(text, pattern):
    """{"rule, format, column": match of pattern} for every step kernel whose demangled name precedes a match."""
    text = run("c++filt", input=text).stdout
    return {re.sub(r"memfit::(detail::)?", "", m[1]).strip(): m for m in re.finditer(KERNEL + pattern, text)}


def compiled(options, architecture, folder):
    """The machine code of one architecture as a file, and what ptxas says of each kernel in it."""
    cubin = Path(folder) / f"{architecture}.cubin"
    result = run(options.nvcc, "-std=c++20", "-I", options.include, f"-arch={architecture}", "-Xptxas", "-v", "-cubin",
                 options.source, "-o", cubin)
    if result.returncode != 0:
        finish([result.stdout], "")
    return cubin, by_kernel(result.stdout, r".*\n *(?P<said>.*stack frame.*)\n.*: Used (?P<registers>\d+) reg")


def code_of(disassembler, cubin):
    """{kernel: its instructions, without operands} of a file of machine code."""
    listing = by_kernel(run(disassembler, "-c", cubin).stdout, r".*:\n\.text\..*:\n(?P<code>(?s:.*?))(?=\n\t\.section|\Z)")
    return {name: re.findall(r"/\*[0-9a-f]+\*/ +(?:@\S+ +)?([A-Z][\w.]*)", m["code"]) for name, m in listing.items()}


def wide_columns(kernel):
    """How many fp32 columns a kernel reads, the gradient among them."""
    rule, state, parameter = kernel.split(", ")
    return 1 + (parameter == "plain_column<fp32>") + (SLOTS[rule] if state == "fp32" else 0)


def faults_of_code(kernel, code):
    """What is wrong with a kernel's instructions."""
    local = [i for i in code if re.match(r"(LDL|STL)\b", i)]
    generic = [i for i in code if re.match(r"(LD|ST)\.", i) and not OF_ITEM.match(i)]
    if local:
        yield f"uses local memory: {', '.join(local)}"
    if generic:
        yield f"reaches columns by generic addresses: {', '.join(generic)}"
    columns = wide_columns(kernel)
    for name, expected in [("LDG", RUNS * columns), ("STG", RUNS * (columns - 1))]:
        wide = sum(i.startswith(name + ".") and ".128" in i for i in code)
        if wide < expected:
            yield f"has {wide} {name} of 128 bits, its fp32 columns want {expected}"


def judge(options, architecture, disassembler):
    """Prints the registers of one architecture's kernels and returns their faults."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        cubin, told = compiled(options, architecture, folder)
        code = code_of(disassembler, cubin) if disassembler else None
    for kernel, words in sorted(told.items()):
        print(f"{architecture} {words['registers']:>4} registers  {kernel}")
        if any(number != "0" for number in re.findall(r"\d+", words["said"])):
            faults.append(f"{architecture} {kernel}: {words['said']}")
        if code is not None:
            faults += [f"{architecture} {kernel}: {fault}" for fault in faults_of_code(kernel, code.get(kernel, []))]
    return faults or ([] if told else [f"{architecture}: ptxas says nothing of a step kernel"])


def main():
    options = parser(__doc__)
    options.add_argument("--nvcc", required=True)
    options.add_argument("--source", type=Path, default=Path(__file__).with_name("sass.cu"))
    options.add_argument("--architecture", action="append")
    options = options.parse_args()
    disassembler = nvdisasm(options.nvcc)
    if not disassembler:
        print("the machine code is not judged: nvdisasm is neither on the PATH nor beside nvcc nor in build/tools/bin")
    faults = [f for a in options.architecture or ARCHITECTURES for f in judge(options, a, disassembler)]
    finish(faults, "no stack frame, no spill" + (", no local memory, wide global accesses" if disassembler else ""))


if __name__ == "__main__":
    main()
