#!/usr/bin/env python3
"""AdamW on the CPU: memfit's steps beside those of PyTorch, DeepSpeed, torchao and bitsandbytes, in one process.

bench/peers/peers.py MEMFIT_STEPS_SO [--threads N] [--log2 22-27] [--rounds N] [--seconds S] [--svg FILE]. Every optimizer
steps the same fp32 parameters with the same fp32 gradients and hyper-parameters, each once per round in an order drawn
anew, so that what else the machine does meets all of them. A round's times are compared with one another, and medians of
those ratios quoted. An optimizer that has taken S seconds at a size takes part in no more rounds of it. Prints tables for
bench/README.md and draws the picture. A library that is missing or fails is named with its own words.
"""

import argparse
import ctypes
import math
import os
import random
import statistics
import sys
import time
from pathlib import Path

FORMATS = ["fp32", "bf16", "root8", "float8", "linear8", "dynamic8"]
RULE = {"lr": 1e-6, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
EXACT_PEERS = ["torch fused", "DeepSpeed CPUAdam"]
PAPER = "bitsandbytes 8-bit"


class Settings(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("lr", "beta1", "beta2", "eps", "weight_decay")]


class Memfit:
    """One optimizer of memfit_steps.so."""

    def __init__(self, library, state, parameter, gradient, threads):
        self.library, self.parameter, self.gradient = library, parameter, gradient
        settings = Settings(RULE["lr"], *RULE["betas"], RULE["eps"], RULE["weight_decay"])
        self.made = ctypes.c_void_p(library.memfit_new(
            state.encode(), ctypes.byref(settings), ctypes.c_void_p(parameter.data_ptr()),
            ctypes.c_int64(parameter.numel()), ctypes.c_int(threads)))
        if not self.made:
            raise RuntimeError("no optimizer")

    def step(self):
        if self.library.memfit_step(self.made, ctypes.c_void_p(self.gradient.data_ptr())) != 0:
            raise RuntimeError("the step failed")

    def __del__(self):
        self.library.memfit_delete(self.made)


def load(path):
    library = ctypes.CDLL(str(path.resolve()))
    library.memfit_new.restype = ctypes.c_void_p
    library.memfit_delete.restype = None
    return library


def torch_fused(parameter):
    import torch
    return torch.optim.AdamW([parameter], fused=True, **RULE)


def deepspeed_adam(parameter):
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip puts ninja
    from deepspeed.ops.adam import DeepSpeedCPUAdam
    return DeepSpeedCPUAdam([parameter], adamw_mode=True, **RULE)


def torchao_8bit(parameter):
    from torchao.optim import AdamW8bit
    return AdamW8bit([parameter], **RULE)


def bitsandbytes_8bit(parameter):
    import bitsandbytes
    return bitsandbytes.optim.AdamW8bit([parameter], **RULE)


PEERS = {"torch fused": torch_fused, "DeepSpeed CPUAdam": deepspeed_adam, "torchao 8-bit": torchao_8bit,
         PAPER: bitsandbytes_8bit}


def contenders(library, parameter, gradient, threads, missing):
    """{name: something with step()}, each warmed up by two steps; what fails is told in `missing`."""
    makers = {f"memfit {state}": lambda state=state: Memfit(library, state, parameter, gradient, threads)
              for state in FORMATS}
    makers |= {name: lambda make=make: make(parameter) for name, make in PEERS.items()}
    ready = {}
    for name, make in makers.items():
        if name in missing:
            continue
        try:
            optimizer = make()
            optimizer.step()
            optimizer.step()
            ready[name] = optimizer
        except Exception as e:  # any library may fail in any way, and the others are still measured
            missing[name] = f"{type(e).__name__}: {e}".strip().splitlines()[0]
    return ready


def measure(library, count, options, missing):
    """{name: seconds of its step in each round}, None where it took no part."""
    import torch
    torch.manual_seed(1)
    parameter = torch.nn.Parameter(torch.rand(count) - 0.5)
    parameter.grad = 0.01 * (torch.rand(count) - 0.5) ** 3
    ready = contenders(library, parameter, parameter.grad, options.threads, missing)
    times = {name: [] for name in ready}
    for _ in range(options.rounds):
        for name in random.sample(list(ready), len(ready)):
            if sum(t for t in times[name] if t) > options.seconds:
                times[name].append(None)
                continue
            start = time.perf_counter()
            ready[name].step()
            times[name].append(time.perf_counter() - start)
    return times


def median_ratio(above, below):
    """The median over the rounds that both took part in."""
    return statistics.median(a / b for a, b in zip(above, below) if a and b)


def median(times):
    return statistics.median(t for t in times if t)


def fastest_exact(times):
    """The fp32 peer with the least median."""
    return min((name for name in EXACT_PEERS if name in times), key=lambda name: median(times[name]))


def print_tables(measured):
    print("| parameters | step | ms | times as fast as the fastest fp32 peer | as bitsandbytes 8-bit |")
    print("| --- | --- | --- | --- | --- |")
    for count, times in measured.items():
        exact = fastest_exact(times)
        for name, own in times.items():
            paper = f"{median_ratio(times[PAPER], own):.1f}" if PAPER in times else ""
            mark = " (the fastest)" if name == exact else ""
            print(f"| 2^{count.bit_length() - 1} | {name} | {1e3 * median(own):.1f} | "
                  f"{median_ratio(times[exact], own):.2f}{mark} | {paper} |")


COLORS = ["#08519c", "#3182bd", "#e7298a", "#54278f", "#9e9ac8", "#238b45", "#d94801", "#fd8d3c", "#a63603", "#636363"]


def decades(values):
    """The least span of powers of ten around the values."""
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def picture(measured):
    """Parameters to the right, parameters per second upwards, both on logarithmic scales."""
    width, height, left, right, top, bottom = 720, 400, 70, 530, 20, 340
    names = list(dict.fromkeys(name for times in measured.values() for name in times))
    speeds = {name: [(count, count / median(times[name])) for count, times in measured.items() if name in times]
              for name in names}
    low, high = decades([speed for points in speeds.values() for _, speed in points])
    first, last = min(measured).bit_length() - 1, max(measured).bit_length() - 1

    def x(count):
        return left + (right - left) * (math.log2(count) - first) / max(1, last - first)

    def y(speed):
        return bottom - (bottom - top) * (math.log10(speed) - low) / (high - low)

    lines = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
             f"height='{height}' font-family='sans-serif' font-size='12'>",
             "<rect width='100%' height='100%' fill='white'/>"]
    for decade in range(low, high + 1):
        for digit in range(1, 10 if decade < high else 2):
            level = y(digit * 10.0 ** decade)
            lines.append(f"<path d='M{left} {level:.1f}H{right}' stroke='{'#bbb' if digit == 1 else '#eee'}'/>")
        lines.append(f"<text x='{left - 8}' y='{y(10.0 ** decade) + 4:.1f}' text-anchor='end'>{10.0 ** (decade - 6):g}</text>")
    for power in range(first, last + 1):
        lines.append(f"<text x='{x(1 << power):.1f}' y='{bottom + 18}' text-anchor='middle'>2^{power}</text>")
    lines.append(f"<text x='{(left + right) / 2}' y='{bottom + 40}' text-anchor='middle'>parameters</text>")
    lines.append(f"<text x='16' y='{(top + bottom) / 2}' text-anchor='middle' "
                 f"transform='rotate(-90 16 {(top + bottom) / 2})'>million parameters stepped per second</text>")
    for number, (name, color) in enumerate(zip(names, COLORS)):
        line = " ".join(f"{x(count):.1f},{y(speed):.1f}" for count, speed in speeds[name])
        dashes = "" if name.startswith("memfit") else " stroke-dasharray='6 4'"
        key = top + 10 + 20 * number
        lines.append(f"<polyline points='{line}' fill='none' stroke='{color}' stroke-width='2'{dashes}/>"
                     f"<path d='M{right + 15} {key}h26' stroke='{color}' stroke-width='2'{dashes}/>"
                     f"<text x='{right + 47}' y='{key + 4}'>{name}</text>")
    return "\n".join([*lines, "</svg>", ""])


def arguments():
    result = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    result.add_argument("library", type=Path, help="memfit_steps.so, a target of the benchmarks")
    result.add_argument("--threads", type=int, default=os.cpu_count())
    result.add_argument("--log2", default="22-27", metavar="FIRST-LAST", help="parameters, as powers of two")
    result.add_argument("--rounds", type=int, default=15)
    result.add_argument("--seconds", type=float, default=60, help="of each optimizer at each size, about")
    result.add_argument("--svg", type=Path)
    return result.parse_args()


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when a library starts its threads
    import torch
    torch.set_num_threads(options.threads)
    library = load(options.library)
    first, last = map(int, options.log2.split("-"))
    missing, measured = {}, {}
    for power in range(first, last + 1):
        measured[1 << power] = measure(library, 1 << power, options, missing)
        print(f"2^{power} measured", file=sys.stderr, flush=True)
    print_tables(measured)
    for name, words in missing.items():
        print(f"\n{name} is left out: {words}")
    if options.svg:
        options.svg.write_text(picture(measured))


if __name__ == "__main__":
    main()
