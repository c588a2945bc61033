"""Records what the program computes, and compares it later: see scripts/golden."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from cases import Case, runs
from commands import commands
from differences import MAY_DIFFER, Differences, files
from scratch import Failed, Scratch, folder_of

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
#: Threads, and whether `--threads` sets them or the environment. The first result is kept.
ONE, *OTHERS = [(1, True), (3, True), (2, False)]
#: The lists of which every entry needs a case.
LISTS = ("rules", "behaviours", "schedules", "policies", "problems", "data", "partitions", "models")
#: Keys that matter only for data that must be fetched.
NEED_NO_CASE = {"data.check"}


def once(case: Case, binary: Path, scratch: Path, kept: Path) -> list[list[str]]:
    """Does a case; if it is `varied`, again with other numbers of threads."""
    first = Scratch(binary, scratch / "1", kept, *ONE)
    case.do(first)
    for turn, threads in enumerate(OTHERS if case.varied else (), start=2):
        again = Scratch(binary, scratch / f"{turn}", scratch / f"kept-{turn}", *threads)
        case.do(again)
        there, here = files(kept), files(again.kept)
        for name in there.keys() | here.keys():
            if (
                name not in there
                or name not in here
                or (there[name].read_bytes() != here[name].read_bytes())
            ):
                raise Failed(f"{name} is another with {threads[0]} threads than with one")
    return first.commands


def native(case: Case, binary: Path, kept: Path) -> dict:
    """What came of a case: how long it took, and why it failed if it did."""
    began = time.monotonic()
    told: dict = {"failed": None}
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        try:
            told["commands"] = once(case, binary, Path(scratch), kept)
        except (Failed, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            told["failed"] = f"{type(error).__name__}: {error}"
    told["seconds"] = round(time.monotonic() - began, 2)
    return told


def through_python(python: str, only: str, into: Path) -> dict[str, dict]:
    """The cases of wheel.py, in a process of the interpreter that has the wheel."""
    words = [python, str(HERE / "wheel.py"), str(into), only]
    environment = {**os.environ, "RAYON_NUM_THREADS": "2"}
    # Away from the sources, so that the installed wheel is what is imported.
    done = subprocess.run(
        words, cwd=into, env=environment, capture_output=True, text=True, timeout=900
    )
    if done.returncode != 0:
        return {"python: all": {"failed": done.stderr.strip()[-600:], "seconds": 0.0}}
    return json.loads(done.stdout.splitlines()[-1])


def perform(options: argparse.Namespace, into: Path) -> dict[str, dict]:
    """Does all cases; their files go to folders `into/NAME`."""
    chosen = [c for c in [*runs(), *commands()] if fnmatchcase(c.name, options.only)]
    results = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        binary = options.fedstay.resolve()
        done = pool.map(lambda case: native(case, binary, into / folder_of(case.name)), chosen)
        for number, (case, told) in enumerate(zip(chosen, done, strict=True), start=1):
            results[case.name] = told
            if sys.stderr.isatty():
                print(f"\r{number} of {len(chosen)}", end="", file=sys.stderr, flush=True)
    if options.python:
        results |= through_python(options.python, options.only, into)
    else:
        print("no --python: the wheel's cases are skipped", file=sys.stderr)
    return results


def forgotten(binary: Path) -> list[str]:
    """What the program lists and no case uses."""
    listed = json.loads(subprocess.check_output([binary, "list", "--json"]))
    used = {"policy.kind": {"none"}, "data.kind": {"digits", "cifar10", "mnist", "fashion-mnist"}}
    used |= {"partition.kind": {"by-class"}, "model.kind": {"mlp"}, "schedule.kind": {"always"}}
    for case in [*runs(), *commands()]:
        for key, value in case.settings.items():
            used.setdefault(key, set()).add(str(value))
    missing = []
    for what in LISTS:
        key = {"policies": "policy", "data": "data"}.get(what, what.removesuffix("s")) + ".kind"
        names = {entry["name"] for entry in listed[what]}
        missing += [f"{key} = {name}" for name in sorted(names - used.get(key, set()))]
    optimisers = {entry["name"] for entry in listed["optimisers"]}
    unused = optimisers - used.get("server.optimiser", set())
    missing += [f"server.optimiser = {name}" for name in sorted(unused)]
    keys = {entry["name"] for entry in listed["keys"]}
    base = {"seed", "rounds", "step_size", "eval_every"}
    return missing + sorted(keys - used.keys() - base - NEED_NO_CASE)


def record(options: argparse.Namespace) -> int:
    if options.folder.exists() and any(options.folder.iterdir()):
        sys.exit(f"{options.folder} is not empty; name another folder, or remove it first")
    options.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    results = perform(options, options.folder)
    version = subprocess.check_output([options.fedstay, "--version"], text=True).strip()
    about = {"version": version, "machine": platform.processor() or platform.machine()}
    index = {"schema": "fedstay.golden/1", **about, "cases": results}
    (options.folder / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    failed = {name: told["failed"] for name, told in results.items() if told["failed"]}
    for name, why in failed.items():
        print(f"failed  {name}: {why}")
    missing = forgotten(options.fedstay)
    for what in missing:
        print(f"no case has {what}")
    seconds = time.monotonic() - began
    print(
        f"{len(results)} cases recorded in {seconds:.0f} s, {len(failed)} failed: {options.folder}"
    )
    return 1 if failed or missing else 0


def compare(options: argparse.Namespace) -> int:
    if not (options.folder / "index.json").exists():
        sys.exit(f"{options.folder} is not a record: scripts/golden record {options.folder}")
    if options.keep and options.keep.exists():
        sys.exit(f"{options.keep} is there already; name another folder for --keep")
    index = json.loads((options.folder / "index.json").read_text())["cases"]
    known = {name: told for name, told in index.items() if fnmatchcase(name, options.only)}
    if not options.python:
        known = {name: told for name, told in known.items() if not name.startswith("python: ")}
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        now = options.keep or Path(scratch) / "now"
        now.mkdir(parents=True)
        results = perform(options, now)
        both = {name: told for name, told in results.items() if name in known}
        verdicts = {name: judged(name, told, options, now) for name, told in both.items()}
    gone = sorted(known.keys() - results.keys())
    unknown = sorted(results.keys() - index.keys())
    return shown(options, index, results, verdicts, gone, unknown)


def judged(name: str, told: dict, options: argparse.Namespace, now: Path) -> Differences:
    """What differs between a case and its record."""
    may_be_new = tuple(options.added.split(",")) if options.added is not None else None
    result = Differences((*MAY_DIFFER, *options.ignore), may_be_new)
    if told["failed"]:
        result.found.append(told["failed"])
    else:
        try:
            result.folders(options.folder / folder_of(name), now / folder_of(name))
        except ValueError as error:
            result.found.append(f"a file cannot be read: {error}")
        if not result.compared and not result.found:
            result.found.append("there was nothing to compare")
    return result


def shown(options, index, results, verdicts, gone, unknown) -> int:
    """Prints the table and what differs; gives the exit code."""
    wide = max(map(len, verdicts), default=4)
    print(f"{'case':{wide}}  {'values':>8}  {'before':>7}  {'now':>7}")
    for name, verdict in verdicts.items():
        mark = f"{len(verdict.found)} DIFFERENT" if verdict.found else "same"
        times = f"{index[name]['seconds']:6.2f}s  {results[name]['seconds']:6.2f}s"
        print(f"{name:{wide}}  {verdict.compared:8}  {times}  {mark}")
        for what in verdict.found[: options.most]:
            print(f"    {what}")
        if len(verdict.found) > options.most:
            print(f"    … and {len(verdict.found) - options.most} more")
        asked = results[name].get("commands")
        if not results[name]["failed"] and index[name].get("commands") != asked:
            print("    note: the case is not the one that was recorded")
    new: dict[str, int] = {}
    for verdict in verdicts.values():
        for key, count in verdict.new.items():
            new[key] = new.get(key, 0) + count
    for key, count in sorted(new.items()):
        print(f"new      {key} ({count} times)")
    drawings = [f"{n}: {d}" for n, verdict in verdicts.items() for d in verdict.drawings]
    for drawing in drawings[: options.most]:
        print(f"drawing  {drawing} changed")
    for name in gone:
        print(f"MISSING  {name} was recorded and is not a case any more")
    for name in unknown:
        print(f"note: {name} was not recorded")
    different = [name for name, verdict in verdicts.items() if verdict.found]
    values = sum(verdict.compared for verdict in verdicts.values())
    print(
        f"{len(verdicts)} cases, {values} values: {len(different)} cases differ, {len(gone)} missing; "
        f"{len(new)} kinds of new keys, {len(drawings)} drawings changed"
    )
    return 1 if different or gone or (options.drawings and drawings) or not verdicts else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/golden", description=__doc__)
    parser.add_argument("mode", choices=["record", "compare"])
    parser.add_argument("folder", type=Path, help="the record")
    release = REPOSITORY / "target" / "release" / "fedstay"
    parser.add_argument("--fedstay", type=Path, default=release, help="the program")
    parser.add_argument("--python", help="an interpreter with the wheel installed")
    parser.add_argument(
        "--only", default="*", help="the cases whose names match, as in 'rule on *'"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cases at a time")
    parser.add_argument("--ignore", action="append", default=[], metavar="FILE:KEY",
                        help="values that may differ, as in 'summary.json:warnings.*'")  # fmt: skip
    parser.add_argument("--added", metavar="KEYS",
                        help="the only keys that may be new, with commas; any, if not given")  # fmt: skip
    parser.add_argument("--drawings", action="store_true", help="changed drawings are differences")
    parser.add_argument("--most", type=int, default=5, help="differences to show of each case")
    parser.add_argument("--keep", type=Path, help="compare: keep the new files in this folder")
    options = parser.parse_args()
    if not shutil.which(options.fedstay):
        parser.error(
            f"{options.fedstay} is not there; cargo build --release, or name one: --fedstay"
        )
    options.folder = options.folder.resolve()
    return record(options) if options.mode == "record" else compare(options)


if __name__ == "__main__":
    sys.exit(main())
