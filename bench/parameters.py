"""`fedstay.Server.step` from Python on ten agents with 10⁷ and 10⁸ parameters each.

Averaging, and ADA-GD with nine of the ten held, on float32, bfloat16 and float32 in a file that is mapped
into memory; all are read where they are. What is measured is wall time on all cores, against the memory
bandwidth of the machine (`stream`, a plain sum of 1 GB on all cores, in turns with the steps), and memory
beyond the arrays. NumPy computes every step once, in float64 by blocks; the answers must agree.

A step must move at least: the gradients twice, the step out and in, the weights in and out. That is what
the share of the bandwidth counts, and nothing else that was moved. Exits with 1 if a target is missed.

    python bench/parameters.py [PARAMETERS …]
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import fedstay
import numpy as np
from common import Child, Targets, quartiles

AGENTS, HELD, STEP_SIZE = 10, 9, 0.1
SIZES = (10_000_000, 100_000_000)
KINDS = ("float32", "bfloat16", "mapped float32")
BFLOAT16 = np.dtype([("bfloat16", "<u2")])
STREAM = 1_000_000_000
BLOCK = 500_000
REPEATS = 5


def make(kind, size, folder):
    """Ten rows of numbers between −1/2 and 1/2, made block by block."""
    shape = (AGENTS, size)
    if kind == "mapped float32":
        path = os.path.join(folder, "gradients")
        rows = np.memmap(path, np.float32, "w+", shape=shape)
    else:
        rows = np.empty(shape, BFLOAT16 if kind == "bfloat16" else np.float32)
    rng = np.random.default_rng(0)
    for row in rows:
        for start in range(0, size, BLOCK):
            block = rng.random(min(BLOCK, size - start), np.float32) - np.float32(0.5)
            place = row[start : start + BLOCK]
            if kind == "bfloat16":
                place["bfloat16"] = block.view(np.uint32) >> 16
            else:
                place[:] = block
    if kind == "mapped float32":
        rows.flush()
        rows = np.memmap(path, np.float32, "r", shape=shape)
    return rows


def widened(rows, start):
    """A block of all rows in float64."""
    block = rows[:, start : start + BLOCK]
    if block.dtype == BFLOAT16:
        block = (block["bfloat16"].astype(np.uint32) << 16).view(np.float32)
    return block.astype(np.float64)


def numpy_step(rule, rows):
    """The same step in NumPy: the coefficients of the gradients, and a function that gives a block."""
    size = rows.shape[1]
    if rule == "fedavg":
        return np.full(AGENTS, -STEP_SIZE / AGENTS)
    gram = np.zeros((AGENTS, AGENTS))
    for start in range(0, size, BLOCK):
        block = widened(rows, start)
        gram += block @ block.T
    solved = np.linalg.solve(gram[:HELD, :HELD], gram[:HELD, HELD])
    coefficients = np.append(-solved, 1.0)
    length = np.sqrt(coefficients @ gram @ coefficients)
    return -STEP_SIZE * min(length, 1.0) / length * coefficients


def check(rule, rows, server):
    """The largest difference from NumPy's step, relative to its largest number, and NumPy's seconds."""
    step, start_time = server.displacement, time.perf_counter()
    coefficients = numpy_step(rule, rows)
    worst = largest = 0.0
    for start in range(0, rows.shape[1], BLOCK):
        expected = coefficients @ widened(rows, start)
        worst = max(worst, float(np.max(np.abs(step[start : start + BLOCK] - expected))))
        largest = max(largest, float(np.max(np.abs(expected))))
    return worst / largest, time.perf_counter() - start_time


def forget_peak():
    """Linux: the peak of the resident memory counts from here."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak():
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["VmHWM"].split()[0]) * 1024


def case(kind, size):
    """One kind of array, both rules, in a process of its own; prints one line of JSON."""
    stream = Child("stream", STREAM, threads=os.cpu_count())
    results = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
        rows = make(kind, size, folder)
        for rule in ("fedavg", "ada-gd"):
            forget_peak()
            server = fedstay.Server(np.zeros(size), rule, STEP_SIZE)
            bandwidth, seconds = [], []
            for repeat in range(REPEATS + 1):
                reports = [
                    fedstay.Report(agent, row, loss=0.1 if agent < HELD else 1e9, epsilon=0.1)
                    for agent, row in enumerate(rows)
                ]
                rate = stream.ask()
                start = time.perf_counter()
                decision = server.step(reports)
                elapsed = time.perf_counter() - start
                if repeat > 0:  # the first touches the server's own memory for the first time
                    bandwidth.append(rate)
                    seconds.append(elapsed)
            assert rule == "fedavg" or decision.d == list(range(HELD)), decision
            beyond = peak() - rows.nbytes
            differs, numpy_seconds = check(rule, rows, server)
            assert differs < 1e-10, f"{kind}, {size}, {rule}: differs from NumPy by {differs:.1e}"
            moved = 2 * rows.nbytes + 4 * 8 * size
            results[rule] = {
                "seconds": seconds, "bandwidth": bandwidth, "moved": moved, "beyond": beyond,
                "differs": differs, "numpy": numpy_seconds, "arrays": rows.nbytes,
            }  # fmt: skip
            del server
    stream.end()
    print(json.dumps(results))


def main(sizes):
    targets = Targets()
    print(
        f"{AGENTS} agents; ms, median (quartiles); GB/s of what two passes must move, and its share of "
        "the bandwidth\nmeasured in turns; memory beyond the arrays, GB; NumPy's time for the same step"
    )
    for size in sizes:
        for kind in KINDS:
            line = subprocess.run(
                [sys.executable, *sys.argv[:1], "--case", kind, str(size)],
                check=True, stdout=subprocess.PIPE, text=True,
            ).stdout
            for rule, result in json.loads(line).items():
                middle, low, high = quartiles(result["seconds"])
                bandwidth = quartiles(result["bandwidth"])[0]
                rate = result["moved"] / middle
                print(
                    f"{size:>11,} {kind:15s} {rule:7s} {1e3 * middle:7.0f} "
                    f"({1e3 * low:.0f}–{1e3 * high:.0f})  {rate / 1e9:5.1f} of "
                    f"{bandwidth / 1e9:5.1f} GB/s  arrays {result['arrays'] / 1e9:4.1f} beyond "
                    f"{result['beyond'] / 1e9:5.2f}  NumPy {result['numpy']:5.1f} s  "
                    f"differs by {result['differs']:.0e}"
                )
                name = f"{size:,} {kind}, {rule}"
                targets.check(f"{name}: share of the bandwidth", rate / bandwidth, 0.8)
    targets.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        case(sys.argv[2], int(sys.argv[3]))
    else:
        main([int(size) for size in sys.argv[1:]] or SIZES)
