"""The history of the benchmarks, in bench/history.jsonl: one line per benchmark and run.

    python3 bench/history.py            the last ten values of everything
    python3 bench/history.py job_j      of one benchmark
"""

import json
import os
import platform
import subprocess
import sys
import time

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "history.jsonl")
BARS = "▁▂▃▄▅▆▇█"


def machine():
    """What it ran on: values compare only on the same."""
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0] if names else platform.processor()} × {os.cpu_count()}"


def append(benchmark, measured):
    """Adds a line; none if nothing was measured."""
    if not measured:
        return
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip()
    line = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit or "unknown",
        "machine": machine(),
        "benchmark": benchmark.removesuffix(".py"),
        "measured": measured,
    }
    with open(FILE, "a") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def main():
    if not os.path.exists(FILE):
        sys.exit("there is no history yet: scripts/bench writes it")
    with open(FILE) as file:
        lines = [json.loads(line) for line in file]
    series = {}
    for line in lines:
        if len(sys.argv) < 2 or line["benchmark"] in sys.argv[1:]:
            for name, of in line["measured"].items():
                key = (line["benchmark"], name, line["machine"])
                series.setdefault(key, []).append((of["value"], of["target"]))
    for (benchmark, name, on), values in series.items():
        last = [value for value, _ in values[-10:]]
        low, high = min(last), max(last)
        place = [round((value - low) / (high - low or 1) * (len(BARS) - 1)) for value in last]
        drawn = "".join(BARS[index] for index in place)
        print(f"{benchmark}: {name}\n  {drawn}  now {last[-1]:g}, target {values[-1][1]:g}  ({on})")


if __name__ == "__main__":
    main()
