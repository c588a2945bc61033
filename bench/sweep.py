"""A slice of Figure 3's grid: the sweep against independent runs, and against a PyTorch loop.

For each K of bench/sweep.toml (q = 0.5, 8 precisions, one seed, CIFAR-10, 2,000 images an agent):

    full      every run from its start, every loss evaluated in full
    early     the same with the exact early exit
    shared    the sweep: runs share their trajectory until somebody leaves
    threads   the same on two threads

All four must give the same accuracies; `early` and `shared` the same rows, bit for bit. PyTorch's
share is EXTRAPOLATED: some rounds of the researcher's loop (module per agent, autograd, SGD, full
losses) are timed on inputs of the same shape and multiplied by the rounds that independent runs
take, less what agents who left do not do. Exits with 1 if a target is missed.

    python bench/sweep.py [ROUNDS]
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time

import common

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 120
AGENTS, SAMPLES, FEATURES, HIDDEN, CLASSES, BATCH = 10, 2000, 3072, 64, 10, 64
FEDSTAY = os.environ.get("FEDSTAY", os.path.join(common.TARGET, "release", "fedstay"))
WAYS = {
    "full": ("--no-share", "--full-losses", "--threads", "1"),
    "early": ("--no-share", "--threads", "1"),
    "shared": ("--threads", "1"),
    "threads": ("--threads", "2"),
}


def sweep(folder, steps, way):
    """Wall seconds of one way, and its store."""
    store = os.path.join(folder, f"{steps}-{way}.db")
    command = [FEDSTAY, "sweep", "bench/sweep.toml", "--store", store, "--set", f"rounds={ROUNDS}",
               "--set", f"local.steps={steps}", *WAYS[way]]
    before = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - before, sqlite3.connect(store)


def rows(store, columns):
    return store.execute(f"SELECT key, {columns} FROM runs ORDER BY key").fetchall()


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


def main():
    targets = common.Targets()
    total = {name: 0.0 for name in (*WAYS, "PyTorch 1", "PyTorch 2")}
    steps_of = [0, 0, 0]
    print(f"seconds for 8 runs of {ROUNDS} rounds; PyTorch extrapolated from three rounds")
    print(f"{'K':>4s} " + " ".join(f"{name:>10s}" for name in total))
    with tempfile.TemporaryDirectory() as folder:
        for steps in (5, 20):
            line = {}
            stores = {}
            for way in WAYS:
                line[way], stores[way] = sweep(folder, steps, way)
            everything = rows(stores["early"], "config, summary")
            for way in ("shared", "threads"):
                assert rows(stores[way], "config, summary") == everything, f"{way}: other rows"
            results = "accuracy_mean, accuracy_min, population_accuracy, left_count"
            assert rows(stores["full"], results) == rows(stores["early"], results), "other results"
            taken, alone, nobody = stores["shared"].execute(
                "SELECT sum(steps_taken), sum(steps_alone), sum(steps_nobody_leaves) FROM work"
            ).fetchone()
            for index, value in enumerate((taken, alone, nobody)):
                steps_of[index] += value
            for threads in (1, 2):
                # A round of the loop is AGENTS · K local steps.
                per_step = torch_round(steps, threads) / (AGENTS * steps)
                line[f"PyTorch {threads}"] = per_step * alone
            for name, seconds in line.items():
                total[name] += seconds
            print(f"{steps:4d} " + " ".join(f"{line[name]:10.1f}" for name in total))
    print(f"{'all':>4s} " + " ".join(f"{total[name]:10.1f}" for name in total))
    taken, alone, nobody = steps_of
    print(f"early exit {total['full'] / total['early']:.2f} times; shared prefixes "
          f"{total['early'] / total['shared']:.2f} times ({alone / taken:.2f} times fewer local "
          f"steps); two threads {total['shared'] / total['threads']:.2f} times")
    print(f"departures save independent runs {nobody / alone:.2f} times the local steps; that is "
          "in all columns")
    torch_best = min(total["PyTorch 1"], total["PyTorch 2"])
    targets.check("sweep on two threads, times independent runs without shortcuts",
                  total["full"] / total["threads"], 5)
    targets.check("sweep on two threads, times PyTorch (extrapolated)",
                  torch_best / total["threads"], 15)
    targets.finish()


if __name__ == "__main__":
    main()
