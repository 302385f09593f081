"""Turns the JSON of bench_step or bench_step_cuda into a table of bench/README.md.

bench_step --benchmark_out=FILE --benchmark_out_format=json --benchmark_repetitions=5 …, then table.py FILE. Quotes medians
where there are repetitions; benchmarks that were left out have no row. On the host the ratios are to the loop that moves
the same bytes, in bytes, and to the fp32 step, in elements per second; on a CUDA device to a copy that moves the same bytes.
"""

import json
import sys

LIMITS = {"step": "stream/16B", "step/adamw/float8/corrected_bf16/from_bf16": "stream/12B",
          "quantize": "stream/quantize", "dequantize": "stream/dequantize"}


def read(path):
    """Whether a CUDA device was measured, and (name, n, threads) -> counters."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    runs = [run for run in document["benchmarks"] if "elements/s" in run]
    medians = [run for run in runs if run.get("aggregate_name") == "median"] or runs
    speed = {}
    for run in medians:
        name, rest = run["run_name"].split("/n:")
        n, *others = rest.split("/")
        threads = next((int(word.split(":")[1]) for word in others if word.startswith("threads:")), 1)
        speed[(name, int(n), threads)] = run
    return "device" in document["context"], speed


def row(*cells):
    print(f"| {' | '.join(str(cell) for cell in cells)} |")


def head(*names):
    row(*names)
    row(*["---"] * len(names))


def rates(run):
    return f"{run['elements/s'] / 1e9:.2f}", f"{run['bytes/s'] / 1e9:.1f}"


def print_host(speed):
    def ratio(run, other, counter):
        return f"{run[counter] / speed[other][counter]:.2f}" if other in speed else ""

    head("benchmark", "elements", "threads", "G elements/s", "GB/s", "of its limit", "of step/…/fp32")
    for (name, n, threads), run in sorted(speed.items(), key=lambda item: (item[0][1:], item[0][0])):
        kind, *_, last = name.split("/")
        # What a step with other columns moves differs from the 16 bytes of the limit: compare bytes.
        of_limit = ratio(run, (LIMITS.get(name, LIMITS.get(kind)), n, threads), "bytes/s")
        of_exact = ratio(run, (f"step/adamw/fp32/{last}", n, threads), "elements/s") if kind == "step" else ""
        row(name, n, threads, *rates(run), of_limit, of_exact)


def print_cuda(speed):
    head("benchmark", "elements", "G elements/s", "GB/s", "of copy")
    for (name, n, _), run in sorted(speed.items(), key=lambda item: (item[0][1], item[0][0])):
        row(name, n, *rates(run), f"{run['of_copy']:.2f}")


def main():
    on_cuda, speed = read(sys.argv[1])
    (print_cuda if on_cuda else print_host)(speed)


if __name__ == "__main__":
    main()
