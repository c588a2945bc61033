"""Two builds of the drivers against each other, taking turns: is a change of structure slower?

    python bench/versus.py OLD NEW

OLD and NEW are folders with the programs of bench/drivers, such as target/release. The same rounds of
Figure 2's setting with full losses and with the early exit on one core and on two (CIFAR-10), one round
of job J, and rounds of 100 to 10,000 agents. Both must give the same answers; printed are medians and the
ratio new / old, below one where the new build is faster.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

SIDES = dict(zip(("old", "new"), sys.argv[1:3], strict=True))
ROUNDS, CHUNK = 24, 4


def environment(threads):
    return {**os.environ, "RAYON_NUM_THREADS": str(threads)}


def show(what, times, unit="ms"):
    old, new = (statistics.median(times[side]) for side in SIDES)
    print(f"{what:44s} {old * 1e3:9.2f} {new * 1e3:9.2f} {unit}   {new / old:5.2f}", flush=True)


class Child:
    """A driver that answers with one line of JSON and waits for a line in between."""

    def __init__(self, folder, name, *arguments, threads=1):
        command = [os.path.join(folder, name), *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(threads))

    def say(self, line=""):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.say()
        self.process.stdin.close()
        self.process.wait(timeout=60)


def early_exit(threads):
    times = {key: {side: [] for side in SIDES} for key in ("full", "early")}
    children, losses = {}, {}
    for chunk in range(0, ROUNDS, CHUNK):
        for side, folder in SIDES.items():
            if chunk == 0:
                arguments = ("received", ROUNDS, CHUNK, "wall")
                children[side] = Child(folder, "early_exit", *arguments, threads=threads)
            else:
                children[side].say()
            answer = children[side].read()
            losses[side] = answer["loss"]
            for key, of in times.items():
                of[side].extend(answer[key])
        assert losses["old"] == losses["new"], losses
    for child in children.values():
        child.end()
    for key, of in times.items():
        show(f"figure 2, {key} losses, {threads} thread(s)", of)


def job_j():
    with tempfile.TemporaryDirectory() as scratch:
        times = {side: [] for side in SIDES}
        children = {}
        for side, folder in SIDES.items():
            os.mkdir(os.path.join(scratch, side))
            children[side] = Child(folder, "job_j", os.path.join(scratch, side))
            kernels = children[side].read()["kernels"]
        for turn in range(9):
            answers = {}
            for side, child in children.items():
                child.say(kernels[-1])
                answers[side] = child.read()
                if turn:
                    parts = [answers[side][part] for part in "abc"]
                    times[side].append(sum(parts) / 1e3)
            assert answers["old"]["losses"] == answers["new"]["losses"]
        for child in children.values():
            child.end()
    show(f"job J, one core, {kernels[-1]}", times)


def scaling(agents):
    rounds = 1 + max(5, min(200, 20_000 // agents))
    times = {side: [] for side in SIDES}
    for _ in range(2):
        for side, folder in SIDES.items():
            command = [os.path.join(folder, "scaling"), str(agents), str(rounds)]
            output = subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment(os.cpu_count()))
            times[side].extend(json.loads(output.stdout)["seconds"])
    show(f"{agents:,} agents, all cores", times)


def main():
    print(f"{'':44s} {'old':>9s} {'new':>9s}      new / old")
    job_j()
    early_exit(1)
    early_exit(2)
    for agents in (100, 1_000, 10_000):
        scaling(agents)


if __name__ == "__main__":
    main()
