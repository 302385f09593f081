#!/usr/bin/env python3
"""Whether training ends as well with small states as with fp32: last validation losses of gpt2_train, over seeds.

bench/quality.py GPT2_TRAIN [--steps N] [--seeds 1,2,3] [--jobs N] [--check] [-- more options of gpt2_train]. Runs each
setting once per seed on the same batches, and prints losses, means and the differences of the means from fp32 as a table
for bench/README.md. With --check the exit status says whether every difference is within what is allowed.
"""

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile

# Name, options, and how far the mean may lie above that of fp32, as a share of it.
SETTINGS = [
    ("fp32", ["--state", "fp32"], None),
    ("root8", ["--state", "root8"], 0.003),
    ("root8, bf16 + 8-bit correction", ["--state", "root8", "--precision", "bf16", "--parameters", "corrected"], 0.003),
    ("packed4", ["--state", "packed4"], 0.01),
]
# Small runs are chaotic: what rounds differently ends elsewhere. A clipped, slowly rising rate keeps that small.
TRAINING = ["--model", "small", "--batch", "8", "--seq", "128", "--lr", "5e-4", "--warmup", "100", "--clip-norm", "1"]


def train(program, options, seed, steps):
    """The last validation loss of one run on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        command = [program, *options, "--seed", str(seed), "--steps", str(steps), "--threads", "1", "--log", log]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        with open(log, encoding="utf-8") as lines:
            return json.loads(list(lines)[-1])["val_loss"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("options", nargs="*", help="of gpt2_train, instead of those of the same name here")
    return parser.parse_args()


def main():
    wanted = parse()
    seeds = [int(seed) for seed in wanted.seeds.split(",")]
    with concurrent.futures.ThreadPoolExecutor(wanted.jobs) as pool:
        running = [
            [pool.submit(train, wanted.program, merged(options, wanted.options), seed, wanted.steps) for seed in seeds]
            for _, options, _ in SETTINGS
        ]
        losses = [[run.result() for run in runs] for runs in running]
    exact = statistics.mean(losses[0])
    kept = True
    print(f"| states | {' | '.join(f'seed {seed}' for seed in seeds)} | mean | of fp32 | allowed |")
    print(f"| --- | {' | '.join('---:' for _ in seeds)} | ---: | ---: | ---: |")
    for (name, _, allowed), row in zip(SETTINGS, losses):
        difference = statistics.mean(row) / exact - 1
        kept = kept and (allowed is None or difference <= allowed)
        cells = [name, *(f"{loss:.4f}" for loss in row), f"{statistics.mean(row):.4f}"]
        cells += ["", ""] if allowed is None else [f"{100 * difference:+.2f} %", f"{100 * allowed:+.1f} %"]
        print(f"| {' | '.join(cells)} |")
    if wanted.check and not kept:
        sys.exit("a mean lies too far above that of fp32")


def merged(options, others):
    """The options of every run; gpt2_train takes each once, so those of `others` replace them."""
    chosen = {}
    for words in (TRAINING, options, others):
        chosen.update(zip(words[::2], words[1::2]))
    return [word for pair in chosen.items() for word in pair]


if __name__ == "__main__":
    main()
