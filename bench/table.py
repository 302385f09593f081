"""Turns the JSON of bench_step into the table of bench/README.md.

bench_step --benchmark_out=FILE --benchmark_out_format=json --benchmark_repetitions=5 …, then table.py FILE. Quotes medians
where there are repetitions; the ratios are to the loop that moves the same bytes, in elements per second.
"""

import json
import sys

LIMITS = {"step": "stream/16B", "quantize": "stream/quantize", "dequantize": "stream/dequantize"}


def read(path):
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)["benchmarks"]
    medians = [run for run in runs if run.get("aggregate_name") == "median"] or runs
    speed = {}
    for run in medians:
        name, n, threads, *_ = run["run_name"].split("/n:")[0], *run["run_name"].split("/n:")[1].split("/")
        speed[(name, int(n), int(threads.split(":")[1]))] = (run["elements/s"], run["bytes/s"])
    return speed


def main():
    speed = read(sys.argv[1])
    print("| benchmark | elements | threads | G elements/s | GB/s | of its limit | of step/…/fp32 |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (name, n, threads), (elements, moved) in sorted(speed.items(), key=lambda item: (item[0][1:], item[0][0])):
        kind, *_, last = name.split("/")
        limit = speed.get((LIMITS.get(kind), n, threads))
        exact = speed.get((f"step/adamw/fp32/{last}", n, threads)) if kind == "step" else None
        # What a step with other columns moves differs from the 16 bytes of the limit: compare bytes.
        of_limit = f"{moved / limit[1]:.2f}" if limit else ""
        of_exact = f"{elements / exact[0]:.2f}" if exact else ""
        print(f"| {name} | {n} | {threads} | {elements / 1e9:.2f} | {moved / 1e9:.1f} | {of_limit} | {of_exact} |")


if __name__ == "__main__":
    main()
