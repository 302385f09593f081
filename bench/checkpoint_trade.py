#!/usr/bin/env python3
"""What checkpointing costs and saves in real training: bytes of activations against time per step.

bench/checkpoint_trade.py GPT2_TRAIN [--choices none,sqrt,…] [--rounds N] [--svg FILE] -- options of gpt2_train. Runs
every choice once per round, so that what else the machine does meets all of them; quotes the median over all steps
but the first two of each run. Prints a table for bench/README.md and draws it.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DEFAULT = "none,selective,sqrt,every:1,revolve:6,budget:50%,budget:25%,budget:10%"


def one_run(program, choice, options):
    """Seconds of each step but the first two, and the bytes of activations."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        command = [program, "--checkpoint", choice, "--log", str(log), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        steps = [json.loads(line) for line in log.read_text().splitlines()]
    return [1 / s["tokens_per_s"] for s in steps[2:]], steps[-1]["bytes"]["activations"], steps[-1]["loss"]


def measure(program, choices, rounds, options):
    seconds, size, losses = {c: [] for c in choices}, {}, set()
    for _ in range(rounds):
        for choice in choices:
            times, size[choice], loss = one_run(program, choice, options)
            seconds[choice] += times
            losses.add(loss)
    if len(losses) != 1:
        sys.exit(f"the choices differ in their losses: {sorted(losses)}")
    return {c: (size[c], statistics.median(seconds[c])) for c in choices}


def print_table(measured):
    full, fastest = measured["none"]
    print("| `--checkpoint` | MB of activations | of all | time per step, of `none` |")
    print("| --- | --- | --- | --- |")
    for choice, (size, seconds) in measured.items():
        print(f"| `{choice}` | {size / 1e6:.1f} | {size / full:.3f} | {seconds / fastest:.3f} |")


def picture(measured):
    """Bytes to the right on a logarithmic scale, time upwards, both relative to keeping everything."""
    full, fastest = measured["none"]
    least = min(size for size, _ in measured.values()) / full
    slowest = max(seconds for _, seconds in measured.values()) / fastest
    width, height, left, bottom = 640, 360, 60, 310
    decades = 1
    while 10.0 ** -decades > least:
        decades += 1
    top = max(1.4, slowest * 1.05)

    def x(share):
        return left + (width - left - 110) * (1 + math.log10(share) / decades)

    def y(ratio):
        return bottom - (bottom - 20) * (ratio - 0.9) / (top - 0.9)

    lines = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
             f"height='{height}' font-family='sans-serif' font-size='12'>",
             "<rect width='100%' height='100%' fill='white'/>"]
    ratio = 1.0
    while ratio < top:
        lines.append(f"<path d='M{left} {y(ratio):.1f}H{width - 20}' stroke='#ddd'/>"
                     f"<text x='{left - 8}' y='{y(ratio) + 4:.1f}' text-anchor='end'>{ratio:.1f}</text>")
        ratio += 0.1 if top < 2 else 0.5
    for decade in range(decades + 1):
        share = 10.0 ** -decade
        lines.append(f"<path d='M{x(share):.1f} 20V{bottom}' stroke='#ddd'/>"
                     f"<text x='{x(share):.1f}' y='{bottom + 16}' text-anchor='middle'>{share:g}</text>")
    lines.append(f"<text x='{width / 2}' y='{bottom + 36}' text-anchor='middle'>"
                 "bytes of activations, of those without checkpointing</text>")
    lines.append(f"<text x='14' y='{bottom / 2}' text-anchor='middle' transform='rotate(-90 14 {bottom / 2})'>"
                 "time per step, of that without</text>")
    for choice, (size, seconds) in measured.items():
        px, py = x(size / full), y(seconds / fastest)
        lines.append(f"<circle cx='{px:.1f}' cy='{py:.1f}' r='4' fill='#3182bd'/>"
                     f"<text x='{px + 7:.1f}' y='{py - 5:.1f}'>{choice}</text>")
    return "\n".join([*lines, "</svg>", ""])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program")
    arguments.add_argument("--choices", default=DEFAULT)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--svg", type=Path)
    mine, _, options = " ".join(sys.argv[1:]).partition(" -- ")
    o = arguments.parse_args(mine.split())
    choices = list(dict.fromkeys(["none", *o.choices.split(",")]))
    measured = measure(o.program, choices, o.rounds, options.split())
    print_table(measured)
    if o.svg:
        o.svg.write_text(picture(measured))


if __name__ == "__main__":
    main()
