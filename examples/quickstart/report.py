"""Compares training logs: a table of bytes and losses, and a picture of both.

report.py FOLDER STATE... reads FOLDER/STATE.jsonl and writes FOLDER/quickstart.svg with gnuplot.
"""

import json
import pathlib
import subprocess
import sys

CATEGORIES = ["parameters", "gradients", "states", "activations", "workspace"]


def read(path):
    with open(path, encoding="utf-8") as log:
        lines = [json.loads(line) for line in log]
    size = lines[-1]["bytes"]
    size["states"] = size["moments"] + size["scales"]
    return {
        "loss": [(line["step"], line["loss"]) for line in lines],
        "val": [(line["step"], line["val_loss"]) for line in lines if "val_loss" in line],
        "bytes": size,
    }


def table(runs):
    first = next(iter(runs.values()))
    rows = [["moments in", *CATEGORIES, "states of fp32", "validation loss", "to fp32"]]
    for state, run in runs.items():
        share = run["bytes"]["states"] / first["bytes"]["states"]
        final = run["val"][-1][1]
        change = final / first["val"][-1][1] - 1
        sizes = [f"{run['bytes'][category]:,}" for category in CATEGORIES]
        rows.append([state, *sizes, f"{share:.1%}", f"{final:.4f}", f"{change:+.2%}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]
        print("  ".join(cells))


def block(name, points):
    lines = "\n".join(" ".join(str(value) for value in point) for point in points)
    return f"${name} << END\n{lines}\nEND\n"


def picture(runs, path):
    script = [f"set terminal svg size 1100,450 font 'sans,13' background 'white'\nset output '{path}'\n"]
    for state, run in runs.items():
        script.append(block(f"loss_{state}", run["loss"]))
        script.append(block(f"val_{state}", run["val"]))
    mib = [[state, *(run["bytes"][c] / 2**20 for c in CATEGORIES)] for state, run in runs.items()]
    script.append(block("memory", mib))
    curves = []
    for color, state in enumerate(runs, start=1):
        curves.append(f"$loss_{state} using 1:2 smooth bezier with lines lc {color} lw 1 dt 3 notitle")
        curves.append(f"$val_{state} using 1:2 with linespoints lc {color} lw 2 pt 7 ps 0.4 title '{state}'")
    bars = [f"$memory using {i}:xtic(1) title '{c}'" for i, c in enumerate(CATEGORIES, start=2)]
    script.append(
        "set multiplot layout 1,2\n"
        "set title 'Loss per byte in nats (dots: validation)'\nset xlabel 'step'\nset grid ytics\n"
        f"plot {', '.join(curves)}\n"
        "set title 'Memory in MiB'\nunset xlabel\nset style data histogram\nset style histogram rowstacked\n"
        "set style fill solid 0.8 border -1\nset boxwidth 0.6\nset yrange [0:*]\nset key outside right\n"
        f"plot {', '.join(bars)}\nunset multiplot\n"
    )
    subprocess.run(["gnuplot"], input="".join(script), text=True, check=True)


def main():
    folder = pathlib.Path(sys.argv[1])
    runs = {state: read(folder / f"{state}.jsonl") for state in sys.argv[2:]}
    print("\nBytes by category, and what became of the loss:\n")
    table(runs)
    path = folder / "quickstart.svg"
    picture(runs, path)
    print(f"\nLoss curves and memory: {path}")


if __name__ == "__main__":
    main()
