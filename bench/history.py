"""The history of the benchmarks, in bench/history.jsonl: one line per benchmark and run.

    python3 bench/history.py                      the last ten values of everything
    python3 bench/history.py job_j                of one benchmark
    python3 bench/history.py --plot history.svg   all values, drawn: one panel each, with its target
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from html import escape

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


def series(lines, benchmarks):
    """Everything that was measured, oldest first: by benchmark, name and machine, a list of value,
    target, date and commit."""
    found = {}
    for line in lines:
        if not benchmarks or line["benchmark"] in benchmarks:
            for name, of in line["measured"].items():
                key = (line["benchmark"], name, line["machine"])
                entry = (of["value"], of["target"], line["date"], line["commit"])
                found.setdefault(key, []).append(entry)
    return found


def show(found):
    """Prints the last ten values of each series."""
    for (benchmark, name, on), entries in found.items():
        last = [entry[0] for entry in entries[-10:]]
        low, high = min(last), max(last)
        place = [round((value - low) / (high - low or 1) * (len(BARS) - 1)) for value in last]
        drawn = "".join(BARS[index] for index in place)
        print(f"{benchmark}: {name}\n  {drawn}  now {last[-1]:g}, target {entries[-1][1]:g}  ({on})")


#: A panel's size, what surrounds its plot, and how many stand side by side.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM, COLUMNS = 420, 210, 56, 58, 20, 30, 2


def ticks(high):
    """Round numbers from zero to above `high`."""
    step = 10 ** math.floor(math.log10(high))
    step = next(step * part for part in (0.2, 0.5, 1, 2, 5) if high <= 5 * step * part)
    return [step * index for index in range(math.ceil(high / step - 1e-9) + 1)]


def panel(key, entries, x0, y0):
    """One series: values over the runs from oldest to newest, the target as a dashed line."""
    benchmark, name, on = key
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    marks = ticks(max(max(entry[:2]) for entry in entries))

    def x(index):
        return x0 + LEFT + wide * (index + 0.5) / len(entries)

    def y(value):
        return y0 + TOP + tall * (1 - value / marks[-1])

    def text(place, what, style=""):
        return f'<text x="{place[0]:.1f}" y="{place[1]:.1f}" {style}>{escape(what)}</text>'

    parts = [
        text((x0 + 8, y0 + 18), f"{benchmark}: {name}", 'font-weight="bold"'),
        text((x0 + 8, y0 + 34), on, 'fill="#666"'),
    ]
    for mark in marks:
        parts.append(f'<path d="M{x0 + LEFT} {y(mark):.1f}h{wide}" stroke="#ddd"/>')
        parts.append(text((x0 + LEFT - 6, y(mark) + 4), f"{mark:g}", 'text-anchor="end"'))
    target = entries[-1][1]
    dashed = 'stroke="#d55e00" stroke-dasharray="5 4"'
    parts.append(f'<path d="M{x0 + LEFT} {y(target):.1f}h{wide}" {dashed}/>')
    way = " ".join(f"{x(index):.1f},{y(entry[0]):.1f}" for index, entry in enumerate(entries))
    parts.append(f'<polyline points="{way}" fill="none" stroke="#0072b2" stroke-width="1.5"/>')
    for index, (value, least, date, commit) in enumerate(entries):
        fill = "#0072b2" if value >= least else "#fff"
        told = f"<title>{escape(f'{date}, {commit}: {value:g}, target {least:g}')}</title>"
        dot = f'cx="{x(index):.1f}" cy="{y(value):.1f}" r="3.5" fill="{fill}" stroke="#0072b2"'
        parts.append(f"<circle {dot}>{told}</circle>")
    ends = [(0, "start")] + [(len(entries) - 1, "end")] * (len(entries) > 1)
    for index, anchor in ends:
        at = (x(index), y0 + HEIGHT - 10)
        parts.append(text(at, f"{entries[index][2]}, {entries[index][3]}", f'text-anchor="{anchor}"'))
    return "\n".join(parts)


def plot(found):
    """All series as an SVG. A hollow point missed its target."""
    down = math.ceil(len(found) / COLUMNS)
    size = f"0 0 {WIDTH * COLUMNS} {HEIGHT * down + 30}"
    key = "benchmarks over time, oldest first · dashed: target · hollow: missed"
    panels = [
        panel(of, entries, WIDTH * (index % COLUMNS), 30 + HEIGHT * (index // COLUMNS))
        for index, (of, entries) in enumerate(found.items())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" '
        f'font-size="11"><title>Benchmarks over time</title><rect width="100%" height="100%" '
        f'fill="#fff"/>\n<text x="8" y="20" font-size="13">{key}</text>\n'
        + "\n".join(panels)
        + "\n</svg>\n"
    )


def main():
    parser = argparse.ArgumentParser(description="The history of the benchmarks")
    parser.add_argument("benchmarks", nargs="*", help="only these")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw all values into this file")
    options = parser.parse_args()
    if not os.path.exists(FILE):
        sys.exit("there is no history yet: scripts/bench writes it")
    with open(FILE) as file:
        found = series([json.loads(line) for line in file], options.benchmarks)
    if not found:
        sys.exit("the history has nothing about: " + ", ".join(options.benchmarks))
    if options.plot:
        with open(options.plot, "w") as file:
            file.write(plot(found))
        print(f"written to {options.plot}")
    else:
        show(found)


if __name__ == "__main__":
    main()
