"""A slice of Figure 3's grid: the sweep against independent runs, and against a PyTorch loop.

The slice (bench/sweep.toml: one heterogeneity, one seed, K = 1, 5, 20, 100, 8 target losses, 300 rounds
of CIFAR-10 with 2,000 images per agent) is swept on two threads, shared prefixes and early exit included.
Two peers would compute the same 32 runs; both are EXTRAPOLATED from a few rounds measured here, for
each K, times the agents' rounds that the 32 runs have:

    independent   this binary, every run from its start, every loss in full, one thread
    PyTorch       the researcher's loop (module per agent, autograd, SGD, full losses), on one thread
                  and on two, whichever is faster

Both peers skip agents that left, as the sweep does. That two of the 32 runs, computed by themselves
with full losses, have the same results is asserted. Exits with 1 if a target is missed.

    python bench/sweep.py [ROUNDS]
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

import common

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
AGENTS, SAMPLES, FEATURES, HIDDEN, CLASSES, BATCH = 10, 2000, 3072, 64, 10, 64
FEDSTAY = os.environ.get("FEDSTAY", os.path.join(common.TARGET, "release", "fedstay"))
ALONE = ("--no-share", "--full-losses", "--threads", "1")
#: Rounds over which an independent run is timed, for each K.
TIMED = {1: 30, 5: 30, 20: 15, 100: 6}
#: Runs that are compared with the same run by itself.
CHECKED = ((20, 1.3), (100, 1.3))
RESULTS = "rounds, stop, left_count, accuracy_mean, accuracy_min, population_accuracy"


def sweep(store, *options, **keys):
    """Wall seconds of a sweep of the slice, with keys set."""
    sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    command = [FEDSTAY, "sweep", "bench/sweep.toml", "--store", store, *sets, *options]
    before = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - before


def cell(steps, **more):
    return {"rounds": ROUNDS, "local.steps": steps, **more}


def independent_unit(folder, steps):
    """Seconds of one agent in one round of an independent run; loading cancels out."""
    few, many = (
        sweep(os.path.join(folder, f"unit-{steps}-{rounds}.db"), *ALONE,
              **{"rounds": rounds, "local.steps": steps, "epsilon": 0.01, "eval_every": 1000})
        for rounds in (2, 2 + TIMED[steps])
    )  # fmt: skip
    return (many - few) / (TIMED[steps] * AGENTS)


def torch_round(steps, threads):
    """Seconds of one round of the researcher's loop with everybody in: the best of three."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    x = torch.randn(AGENTS, SAMPLES, FEATURES)
    y = torch.randint(CLASSES, (AGENTS, SAMPLES))
    server = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Softplus(), nn.Linear(HIDDEN, CLASSES))
    best = float("inf")
    for _ in range(3):
        before = time.perf_counter()
        models = []
        for agent in range(AGENTS):
            model = nn.Sequential(
                nn.Linear(FEATURES, HIDDEN), nn.Softplus(), nn.Linear(HIDDEN, CLASSES))
            model.load_state_dict(server.state_dict())
            with torch.no_grad():
                F.cross_entropy(model(x[agent]), y[agent]).item()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(steps):
                batch = torch.randperm(SAMPLES)[:BATCH]
                optimizer.zero_grad()
                F.cross_entropy(model(x[agent][batch]), y[agent][batch]).backward()
                optimizer.step()
            models.append(model.state_dict())
        server.load_state_dict(
            {name: torch.stack([m[name] for m in models]).mean(0) for name in models[0]})
        best = min(best, time.perf_counter() - before)
    return best


def agent_rounds(store):
    """For each K the rounds that agents work in, over all runs by themselves."""
    worked = dict.fromkeys(TIMED, 0)
    with sqlite3.connect(store) as database:
        for config, summary in database.execute("SELECT config, summary FROM runs"):
            steps, summary = json.loads(config)["local"]["steps"], json.loads(summary)
            # An agent leaves on receipt, before it works.
            worked[steps] += sum(
                summary["rounds"] if agent["left"] is None else agent["left"] - 1
                for agent in summary["agents"]
            )
    return worked


def check(folder, store):
    """Asserts that some runs by themselves, with full losses, have the same results."""
    for steps, epsilon in CHECKED:
        alone = os.path.join(folder, f"check-{steps}.db")
        sweep(alone, *ALONE, **cell(steps, epsilon=epsilon))
        with sqlite3.connect(alone) as database:
            [(key, *expected)] = database.execute(f"SELECT key, {RESULTS} FROM runs")
        with sqlite3.connect(store) as database:
            found = database.execute(f"SELECT {RESULTS} FROM runs WHERE key = ?", [key]).fetchone()
        assert list(found) == expected, f"K = {steps}, epsilon = {epsilon}: {found}, not {expected}"


def main():
    targets = common.Targets()
    columns = ("sweep", "independent", "PyTorch 1", "PyTorch 2")
    total = dict.fromkeys(columns, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "slice.db")
        print(f"seconds for 8 runs of {ROUNDS} rounds each; all but the sweep extrapolated")
        print(f"{'K':>4s} " + " ".join(f"{name:>12s}" for name in columns), flush=True)
        lines = {}
        for steps in TIMED:
            lines[steps] = {"sweep": sweep(store, "--threads", "2", **cell(steps))}
        for steps, worked in agent_rounds(store).items():
            line = lines[steps]
            line["independent"] = worked * independent_unit(folder, steps)
            for threads in (1, 2):
                line[f"PyTorch {threads}"] = worked * torch_round(steps, threads) / AGENTS
            for name in columns:
                total[name] += line[name]
            print(f"{steps:4d} " + " ".join(f"{line[name]:12.1f}" for name in columns), flush=True)
        print(f"{'all':>4s} " + " ".join(f"{total[name]:12.1f}" for name in columns))
        check(folder, store)
        with sqlite3.connect(store) as database:
            taken, alone, nobody = database.execute(
                "SELECT sum(steps_taken), sum(steps_alone), sum(steps_nobody_leaves) FROM work"
            ).fetchone()
        one = sweep(os.path.join(folder, "one.db"), "--threads", "1", **cell(20))
    gain = total["independent"] / total["sweep"]
    threads = one / lines[20]["sweep"]
    # By time, not by count: K = 1 has as many evaluations as K = 100 and few steps.
    print(f"of {gain:.2f} times: two threads {threads:.2f} (K = 20), shared prefixes and early exit "
          f"{gain / threads:.2f} (local steps alone: {alone / taken:.2f} times fewer)")
    print(f"departures save independent runs {nobody / alone:.2f} times the local steps; peers are "
          "given that, or it would be")
    print(f"{gain * nobody / alone:.1f} times independent runs in which the server keeps asking all")
    best = min(total["PyTorch 1"], total["PyTorch 2"])
    targets.check("sweep on two threads, times independent runs without shortcuts", gain, 5)
    targets.check("sweep on two threads, times PyTorch (extrapolated)", best / total["sweep"], 15)
    targets.finish()


if __name__ == "__main__":
    main()
