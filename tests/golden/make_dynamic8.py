"""Writes dynamic8.txt: the published 8-bit dynamic maps as fp32 bit patterns, in code order.

Usage: python make_dynamic8.py > dynamic8.txt   (with the packages of requirements.txt)
The last bits depend on how torch.linspace rounds: with one fma per point on every x86-64 CPU with AVX2, in two
roundings without. The AVX2 table is the one that users have, so it is asked for by name.
"""

import os
import struct

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"

import bitsandbytes
import torch
from bitsandbytes.functional import create_dynamic_map


def bits(value: float) -> str:
    return f"{struct.unpack('<I', struct.pack('<f', value))[0]:08x}"


print("# made by make_dynamic8.py: bitsandbytes create_dynamic_map(signed=True) and (signed=False)")
print(f"# bitsandbytes {bitsandbytes.__version__}, torch {torch.__version__.split('+')[0]}, AVX2")
for name, signed in (("signed", True), ("unsigned", False)):
    table = create_dynamic_map(signed=signed).tolist()
    assert len(table) == 256
    print(name)
    for row in range(0, 256, 8):
        print(" ".join(bits(value) for value in table[row : row + 8]))
