"""Seconds per round and memory for 10 to 10,000 agents of 200 digits, softmax regression, all cores.

    python bench/scaling.py

The cost must be linear in the number of agents: from 100 to 10,000, at most twice the time and the
memory per agent. Exits with 1 if it is not.
"""

import os

import common

AGENTS = (10, 100, 1_000, 10_000)


def main():
    print(f"{'agents':>7s} {'ms/round':>11s} {'µs/agent':>12s} {'peak MB':>8s}")
    rows = {}
    for agents in AGENTS:
        rounds = 1 + max(5, min(200, 20_000 // agents))
        answer = common.output("scaling", agents, rounds, threads=os.cpu_count())
        seconds, low, high = common.quartiles(answer["seconds"])
        rows[agents] = seconds / agents, answer["peak"]
        print(f"{agents:7,d} {seconds * 1e3:11.2f} {seconds / agents * 1e6:12.1f} "
              f"{answer['peak']:8.1f}   quartiles {low * 1e3:.2f}–{high * 1e3:.2f} ms")
    targets = common.Targets()
    targets.check("time per agent, 100 agents against 10,000", rows[100][0] / rows[10_000][0], 0.5)
    grown = (rows[10_000][1] - rows[1_000][1]) / 9_000 / ((rows[1_000][1] - rows[100][1]) / 900)
    targets.check("memory per agent, 100–1,000 against 1,000–10,000", 1 / grown, 0.5)
    targets.finish()


if __name__ == "__main__":
    main()
