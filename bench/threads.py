"""Two cores against one: the same rounds of Figure 2's setting, taking turns.

    python bench/threads.py [ROUNDS]

The first part says what the machine gives: one loop that lives in registers, on one core and on
both at once. Exits with 1 if the target is missed.
"""

import sys

import common

import numpy as np

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 24
CHUNK = 4


def main():
    spin = [common.output("spin", threads, threads=threads) for threads in (1, 2) * 4]
    alone, both = (max(s["loops_per_second"] for s in spin[k::2]) for k in (0, 1))
    print(f"arithmetic in registers: two threads do {both / alone:.2f} times the work of one")

    sides = {threads: common.Child("early_exit", "received", ROUNDS, CHUNK, "wall", threads=threads)
             for threads in (1, 2)}
    times = {threads: {"full": [], "early": [], "work": []} for threads in sides}
    for _ in range(0, ROUNDS, CHUNK):
        # One at a time: the other waits for its line.
        for threads, side in sides.items():
            answer = side.read()
            for key, seconds in times[threads].items():
                seconds.extend(answer[key])
            side.send()
    for side in sides.values():
        side.end()
    targets = common.Targets()
    for key in ("full", "early"):
        one, two = (float(np.median(times[threads][key])) * 1e3 for threads in sides)
        print(f"{key:5s} losses: {one:6.1f} ms a round on one core, {two:6.1f} on two")
        if key == "full":
            targets.check("two cores, times one core", one / two, 1.85)
    targets.finish()


if __name__ == "__main__":
    main()
