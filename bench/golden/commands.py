"""The other commands: killed runs, comparisons, sweeps, figures, data from files."""

import io
import json
import random
import signal
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from cases import BEHAVIOURS, DIGITS, PROBLEM, Case, fitting, run
from differences import files
from scratch import Failed, Scratch, sets
from steps import all_steps

SWEEP = f"""{DIGITS.replace("rounds = 30", "rounds = 20")}
[grid]
rule.kind = ["fedavg", "retain", "maxfl"]
epsilon = [0.4, 0.8, 1.2]
local.steps = [1, 2]
seed = [0, 1]
[[when]]
match = {{ local.steps = 2 }}
set = {{ step_size = 0.2 }}
[[skip]]
local.steps = 2
rule.kind = "maxfl"
"""


def killed(name: str, settings: dict, *options: str) -> Case:
    """A run that is killed half way and resumed must be the run that was left alone."""

    def do(scratch: Scratch) -> None:
        experiment = scratch.write("experiment.toml", fitting(DIGITS, settings))
        words = [experiment, *sets(settings), *options]
        scratch.run(experiment, settings, *options, out="whole")
        length = (scratch.folder / "whole" / "rounds.jsonl").stat().st_size
        for attempt in range(6):
            out = f"cut{attempt}"
            if cut(scratch, words, out, length * (5 - attempt) // 10):
                break
        else:
            raise Failed("the run was always over before it could be killed")
        scratch.fedstay("run", "--resume", out)
        for file, path in files(scratch.kept).items():
            if path.read_bytes() != (scratch.folder / out / file).read_bytes():
                raise Failed(f"{file} of the resumed run is not that of the run left alone")

    return Case(f"resume: {name}", do, settings)


def cut(scratch: Scratch, words: list[str], out: str, length: int) -> bool:
    """Kills a run once its rounds take up this many bytes; returns whether it was cut off."""
    folder = scratch.folder / out
    child = scratch.start("run", *words, "--out", out)
    until = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < until:
        rounds = folder / "rounds.jsonl"
        if (folder / "checkpoint").exists() and rounds.stat().st_size >= length:
            break
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    return (folder / "checkpoint").exists() and not (folder / "summary.json").exists()


def compare(scratch: Scratch) -> None:
    experiment = scratch.write("experiment.toml", DIGITS)
    rules = "fedavg+never,fedavg,fedavg+early-stop,fedavg+keep-best,fedavg+guard,"
    rules += "ada-gd+no-projection,ada-gd+halve,retain,retain+foresight"
    words = ("--rules", rules, "--counterfactual", "--json", "--out", "figures")
    scratch.keep_text("compare.json", scratch.fedstay("compare", experiment, *words))


def tournament(scratch: Scratch) -> None:
    experiment = scratch.write("experiment.toml", DIGITS)
    rules = "fedavg,fedavg+guard,ada-gd+halve,retain,retain+horizon,mw-fed,fedfv"
    behaviours = ",".join(name for name in BEHAVIOURS if " " not in name)
    words = ("--rules", rules, "--behaviours", behaviours, "--seeds", "0,1")
    scratch.fedstay("tournament", experiment, *words, "--set", "rounds=15", "--out", "results")
    table = (scratch.folder / "results" / "tournament.csv").read_text()
    scratch.keep_text("tournament.csv", without_setting(table))
    words = ("--rules", "fedavg,retain", "--behaviours", "threshold", "--seeds", "0", "--json")
    answer = scratch.fedstay("tournament", experiment, *words, "--set", "rounds=15", "--out", "b")
    answer = [{**run, "setting": ""} for run in json.loads(answer)]
    scratch.keep_text("tournament.json", json.dumps(answer))


def without_setting(table: str) -> str:
    """A tournament's table without the names of its settings, which say nothing about results."""
    lines = [line.split(",") for line in table.splitlines()]
    return "".join(",".join(line[:3] + line[4:]) + "\n" for line in lines)


def sweep(*options: str):
    def do(scratch: Scratch) -> None:
        study = scratch.write("study.toml", SWEEP)
        store = ("--store", "study.db")
        scratch.fedstay("sweep", study, *store, *options)

        def ask(command: str, *words: str) -> str:
            return scratch.fedstay("sweep", command, study, *store, *words, plain=True)

        for name, more in (("runs.csv", ()), ("series.csv", ("--series",))):
            ask("export", "--out", name, *more)
            scratch.keep_text(name, (scratch.folder / name).read_text())
        query = ("--by", "epsilon,rule.kind", "--of", "accuracy.mean,left")
        scratch.keep_text("query.numbers", ask("query", *query))
        paired = ("--by", "epsilon", "--against", "epsilon=0.4", "--of", "loss.max")
        scratch.keep_text("paired.numbers", ask("query", *paired))
        where = ("epsilon=0.8", "seed=1", "rule.kind=fedavg", "local.steps=1")
        ask("extract", *(word for each in where for word in ("--where", each)), "--out", "one")
        scratch.keep_run("one", "extracted")

    return do


def check(scratch: Scratch) -> None:
    for kind in ("observation-1", "observation-3", "huber", "smoothed-hinge"):
        answer = scratch.fedstay("check", "--set", f"problem.kind={kind}", "--json")
        scratch.keep_text(f"{kind}.json", answer)
    experiment = scratch.write("experiment.toml", DIGITS)
    scratch.fedstay("run", experiment, "--set", "record_gram=true", "--out", "out")
    scratch.keep_text("run.json", scratch.fedstay("check", "out", "--json"))


def story(scratch: Scratch) -> None:
    experiment = scratch.write("experiment.toml", DIGITS)
    scratch.fedstay("run", experiment, "--set", "epsilon=0.9", "--out", "out")
    scratch.keep_text("story.json", scratch.fedstay("story", "out", "--json"))


def figures(scratch: Scratch) -> None:
    small = ("--rounds", "8", "--seeds", "2", "--set", "data.kind=digits")
    small += ("--set", "data.per_agent=40", "--set", "model.hidden=[8]")
    for name in ("1", "6", "observation-1", "7"):
        scratch.fedstay("figure", name, "--out", "figures")
    two = ("--set", "data.classes=[3, 8]")
    for name, more in (("2", ()), ("8a", two), ("8b", two), ("13", ())):
        scratch.fedstay("figure", name, "--out", "figures", *small, *more)
    for path in sorted((scratch.folder / "figures").iterdir()):
        if path.suffix in (".json", ".svg"):
            scratch.keep_text(path.name, path.read_text())


def dealt(scratch: Scratch) -> None:
    dealing = {"by-class": "q=0.8", "dirichlet": "alpha=0.3", "shards": "k=2", "iid": None}
    for kind, parameter in dealing.items():
        settings = {"partition.kind": kind}
        experiment = scratch.write(f"{kind}.toml", fitting(DIGITS, settings))
        more = ("--set", f"partition.{parameter}") if parameter else ()
        shown = scratch.fedstay("data", "show", experiment, *sets(settings), *more)
        scratch.keep_text(f"{kind}.numbers", shown)


def table(seed: int) -> list[tuple[list[int], int]]:
    """Rows of small whole numbers whose class can be guessed from them."""
    draw = random.Random(seed)
    rows = []
    for row in range(240):
        label = row % 4
        rows.append(([draw.randrange(9) + 5 * (column % 4 == label) for column in range(6)], label))
    return rows


def own_csv(scratch: Scratch) -> None:
    lines = ["a;b;c;d;e;f;kind"]
    lines += [";".join([*map(str, x), "nesw"[y]]) for x, y in table(1)]
    scratch.write("table.csv", "\n".join(lines) + "\n")
    scratch.run(scratch.write("experiment.toml", fitting(DIGITS, CSV)), CSV)


def owned(settings: dict) -> Callable[[Scratch], None]:
    """A run on a table whose rows have three owners, the number of agents being theirs."""

    def do(scratch: Scratch) -> None:
        lines = ["site,a,b,c,d,e,f,target"]
        for place, (x, y) in enumerate(table(3)):
            site = ("north", "St Mary", "west")[place % 7 // 3]
            target = "nesw"[y] if settings is OWNER else str(x[0] - 0.5 * x[1])
            lines.append(",".join([site, *map(str, x), target]))
        scratch.write("table.csv", "\n".join(lines) + "\n")
        base = fitting(DIGITS, settings).replace("agents = 10\n", "")
        scratch.run(scratch.write("experiment.toml", base), settings)

    return do


def npy(kind: str, shape: tuple[int, ...], content: bytes) -> bytes:
    """An array as NumPy writes it, without NumPy."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content


def own_npz(scratch: Scratch) -> None:
    rows = table(2)
    inputs = b"".join(value.to_bytes(8, "little") for x, _ in rows for value in x)
    labels = b"".join(y.to_bytes(8, "little") for _, y in rows)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("features.npy", npy("<i8", (len(rows), 6), inputs))
        file.writestr("labels.npy", npy("<i8", (len(rows),), labels))
    scratch.write("table.npz", archive.getvalue())
    scratch.run(scratch.write("experiment.toml", fitting(DIGITS, NPZ)), NPZ)


def own_images(scratch: Scratch) -> None:
    """Squares of 16 by 16 pixels, brighter in one quarter, for the convolutional net."""
    draw = random.Random(3)
    labels = bytes(row % 4 for row in range(240))
    pixels = bytearray()
    for label in labels:
        for at in range(256):
            quarter = at // 128 * 2 + at % 16 // 8
            pixels.append(draw.randrange(120) + 100 * (quarter == label))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x.npy", npy("|u1", (240, 16, 16), bytes(pixels)))
        file.writestr("y.npy", npy("|u1", (240,), labels))
    scratch.write("images.npz", archive.getvalue())
    scratch.run(scratch.write("experiment.toml", fitting(DIGITS, IMAGES)), IMAGES)


OWN = {"agents": 4, "data.per_agent": 30}
IMAGES = {
    "data.kind": "npz",
    "data.path": '"images.npz"',
    "model.kind": "cnn",
    "model.channels": [4, 6],
    "model.hidden": [16],
    "local.steps": 3,
    "local.batch": 10,
    **OWN,
}
CSV = {
    "data.kind": "csv",
    "data.path": '"table.csv"',
    "data.label": '"kind"',
    "data.header": True,
    "data.delimiter": '";"',
    **OWN,
}
OWNER = {
    "data.kind": "csv",
    "data.path": '"table.csv"',
    "data.owner": '"site"',
    "partition.kind": "owner",
}
NUMBER = {**OWNER, "data.task": "number", "epsilon": 0.2, "step_size": 0.1}
NPZ = {
    "data.kind": "npz",
    "data.path": '"table.npz"',
    "data.x": '"features"',
    "data.y": '"labels"',
    **OWN,
}


def cached() -> list[Case]:
    """Runs on data sets that must have been fetched; nothing is fetched here."""
    cases = []
    for kind in ("cifar10", "mnist", "fashion-mnist"):
        if (Path.home() / ".cache" / "fedstay" / kind).is_dir():
            settings = {"data.kind": kind, "data.check": True, "rounds": 5, "local.batch": 16}
            cases.append(run(f"data: {kind}", DIGITS, settings))
    return cases


def commands() -> list[Case]:
    """Everything but plain runs."""
    long = {"rounds": 400, "model.hidden": [32], "local.batch": 16, "behaviour.kind": "never"}
    guarded = {
        **long, "behaviour.kind": "utility", "behaviour.cost": 0.0001, "behaviour.patience": 40,
        "policy.kind": "guard", "rule.kind": "maxfl", "participation": 0.7,
    }  # fmt: skip
    noisy = {**long, "privacy.clip": 1.0, "privacy.loss_clip": 3.0, "privacy.noise": 0.05}
    return [
        killed("fedavg", long),
        killed("guard, utility", guarded),
        killed("retain", {**long, "rule.kind": "retain", "epsilon": 0.001}),
        killed("privacy", {**noisy, "privacy.delta": 1e-5}),
        killed("fedfv, counterfactual", {**long, "rule.kind": "fedfv"}, "--counterfactual"),
        killed("returning", {**long, "behaviour.kind": "returning", "epsilon": 0.3}),
        *all_steps(),
        Case("compare", compare, {}, varied=True),
        Case("tournament", tournament, {}, varied=True),
        Case("sweep", sweep(), {}, varied=True),
        Case("sweep: nothing shared", sweep("--no-share"), {}),
        Case("sweep: full losses", sweep("--full-losses"), {}),
        Case("check", check, {}),
        Case("story", story, {}, varied=True),
        run("run: story and counterfactual", DIGITS, {"epsilon": 0.9}, "--story",
            "--counterfactual"),
        run("run: guard", PROBLEM, {"problem.kind": "red-blue"}, "--guard"),
        Case("figures", figures, {}),
        Case("data show", dealt, {}),
        Case("data: csv", own_csv, CSV),
        Case("data: owner", owned(OWNER), OWNER),
        Case("data: number", owned(NUMBER), NUMBER),
        Case("data: npz", own_npz, NPZ),
        Case("model: cnn", own_images, IMAGES, varied=True),
        *cached(),
    ]  # fmt: skip
