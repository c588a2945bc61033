"""`fedstay.Server.step` called from Python, against NumPy and against the same step in Rust alone.

Ten agents, 11 million float32 parameters each; nine of them are about to leave and are held. The peers
get the same arrays and compute ADA-GD's step: the tenth agent's gradient, projected off the others'.
All answers must agree. One core, CPU time; contestants take turns. Exits with 1 if a target is missed.
"""

import os
import sys
import tempfile
import time

import fedstay
import numpy as np
from common import Child, Targets, pin, quartiles  # first: it sets the number of threads

AGENTS, HELD, DIMENSION, STEP_SIZE = 10, 9, 11_000_000, 0.1
REPEATS = 9


def clipped(projected):
    """The rest of the step: at most one step size long."""
    length = np.linalg.norm(projected)
    return -STEP_SIZE * min(length, 1.0) / length * projected


def numpy_lstsq(rows):
    wide = rows.astype(np.float64)
    held, moving = wide[:HELD].T, wide[HELD]
    coefficients, *_ = np.linalg.lstsq(held, moving, rcond=None)
    return clipped(moving - held @ coefficients)


def numpy_gram(rows):
    wide = rows.astype(np.float64)
    held, moving = wide[:HELD], wide[HELD]
    lengths = np.sqrt(np.einsum("ij,ij->i", held, held))
    factor = np.linalg.cholesky((held @ held.T) / np.outer(lengths, lengths))

    def solve(right):
        return np.linalg.solve(factor.T, np.linalg.solve(factor, right / lengths)) / lengths

    p = moving - held.T @ solve(held @ moving)
    return clipped(p - held.T @ solve(held @ p))


def fedstay_step(server, rows):
    reports = [
        fedstay.Report(agent, row, loss=0.1 if agent < HELD else 1e9, epsilon=0.1)
        for agent, row in enumerate(rows)
    ]
    decision = server.step(reports)
    assert decision.d == list(range(HELD)), decision


def timed(method, *arguments):
    """CPU seconds, so that a busy neighbour costs nobody anything; the lock is released, so all threads."""
    start = time.process_time()
    answer = method(*arguments)
    return time.process_time() - start, answer


def main():
    pin()
    rows = np.random.default_rng(0).standard_normal((AGENTS, DIMENSION), np.float32)
    times = {
        name: [] for name in ("fedstay from Python", "Rust alone", "NumPy Gram", "NumPy lstsq")
    }
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "gradients"), os.path.join(folder, "weights")
        rows.astype("<f4").tofile(source)
        rust = Child("step", source, DIMENSION, AGENTS, HELD, out)
        server = fedstay.Server(np.zeros(DIMENSION), fedstay.AdaGd(), STEP_SIZE)
        for repeat in range(REPEATS):
            seconds, _ = timed(fedstay_step, server, rows)
            times["fedstay from Python"].append(seconds)
            times["Rust alone"].append(rust.ask())
            seconds, gram = timed(numpy_gram, rows)
            times["NumPy Gram"].append(seconds)
            if repeat < 3:
                seconds, lstsq = timed(numpy_lstsq, rows)
                times["NumPy lstsq"].append(seconds)
        rust.end()
        alone = np.fromfile(out, "<f8")
    scale = np.max(np.abs(lstsq))
    differs = {
        name: float(np.max(np.abs(answer - lstsq)) / scale)
        for name, answer in (("fedstay", server.displacement), ("Gram", gram))
    }
    print(
        f"{AGENTS} agents, {HELD} held, {DIMENSION:,} float32 parameters; CPU ms, median (quartiles)"
    )
    for name, seconds in times.items():
        middle, low, high = (1e3 * value for value in quartiles(seconds))
        print(f"  {name:20s} {middle:8.0f} ({low:.0f}–{high:.0f})")
    print("  largest difference from lstsq:", ", ".join(f"{k} {v:.0e}" for k, v in differs.items()))
    if server.weights.tobytes() != alone.tobytes() or max(differs.values()) > 1e-6:
        sys.exit("MISSED: the answers differ")
    ours_s, rust_s, gram_s, lstsq_s = (quartiles(seconds)[0] for seconds in times.values())
    targets = Targets()
    targets.check("times faster than NumPy's lstsq", lstsq_s / ours_s, 4)
    targets.check("times faster than a f64 Gram in NumPy", gram_s / ours_s, 1.4)
    targets.check("Rust alone over Python (at most 1.3 times slower)", rust_s / ours_s, 1 / 1.3)
    targets.finish()


if __name__ == "__main__":
    main()
