"""Two cores against one: the same rounds of Figure 2's setting, taking turns.

    python bench/threads.py [ROUNDS]

The first part says what the machine gives: one loop that lives in registers, on one core and on
both at once. Where the two "cores" are hardware threads of one, that is the ceiling of everything
that keeps its arithmetic units busy. Exits with 1 if the target is missed.
"""

import sys

import common

import numpy as np

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 24
CHUNK = 4


def main():
    spin = [common.output("spin", threads, threads=threads)["loops_per_second"]
            for threads in (1, 2) * 10]
    gains = sorted(both / alone for alone, both in zip(spin[::2], spin[1::2]))
    print(f"arithmetic in registers: two threads do {np.median(gains):.2f} times the work of one "
          f"({gains[0]:.2f} to {gains[-1]:.2f} in {len(gains)} turns)")

    sides = {}
    times = {threads: {"full": [], "early": [], "work": []} for threads in (1, 2)}
    for chunk in range(0, ROUNDS, CHUNK):
        # One at a time: a side computes from its start, or from the line it is sent, until it
        # answers; then it waits for its next turn.
        for threads in times:
            if chunk == 0:
                sides[threads] = common.Child(
                    "early_exit", "received", ROUNDS, CHUNK, "wall", threads=threads)
            else:
                sides[threads].send()
            answer = sides[threads].read()
            for key, seconds in times[threads].items():
                seconds.extend(answer[key])
    for side in sides.values():
        side.send()
        side.end()
    targets = common.Targets()
    for key in ("full", "early"):
        one, two = (float(np.median(times[threads][key])) * 1e3 for threads in times)
        print(f"{key:5s} losses: {one:6.1f} ms per round on one core, {two:6.1f} on two")
        if key == "full":
            targets.check("two cores, times one core", one / two, 1.85)
    targets.finish()


if __name__ == "__main__":
    main()
