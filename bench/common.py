"""What the benchmarks share: one thread, one core, a driver to talk to, tables."""

import json
import os
import subprocess
import sys

import history

# Before NumPy and PyTorch are imported, or they would start threads of their own.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

TARGET = os.environ.get("CARGO_TARGET_DIR", "target")
LAST_CORE = max(os.sched_getaffinity(0))


def pin():
    """Stays on one core, the same for all contestants: they take turns."""
    os.sched_setaffinity(0, {LAST_CORE})


def driver(name):
    """A program of bench/drivers."""
    return os.path.join(TARGET, "release", name)


class Child:
    """A driver that answers each line with one line of JSON, and waits in between."""

    def __init__(self, name, *arguments, threads=1):
        cores = {LAST_CORE} if threads == 1 else set(range(os.cpu_count()))
        self.process = subprocess.Popen(
            [driver(name), *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended early, code {self.process.wait()}")
        return json.loads(line)

    def ask(self, line=""):
        self.send(line)
        return self.read()

    def send(self, line=""):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit(f"{self.process.args[0]} failed, code {self.process.returncode}")


def output(name, *arguments, threads=1):
    """The one line of JSON of a driver that asks nothing."""
    child = Child(name, *arguments, threads=threads)
    answer = child.read()
    child.end()
    return answer


def quartiles(values):
    """Median and the quartiles around it."""
    ordered = sorted(values)
    return tuple(ordered[round((len(ordered) - 1) * q)] for q in (0.5, 0.25, 0.75))


class Targets:
    """Collects what must hold; exits with 1 and names what does not. What was measured is appended to
    bench/history.jsonl."""

    def __init__(self):
        self.missed = []
        self.measured = {}

    def check(self, name, value, least):
        mark = "ok    " if value >= least else "MISSED"
        print(f"{mark} {name}: {value:.2f} (target {least:g})")
        self.measured[name] = {"value": round(float(value), 4), "target": least}
        if value < least:
            self.missed.append(name)

    def finish(self):
        history.append(os.path.basename(sys.argv[0]), self.measured)
        sys.exit(1 if self.missed else 0)
